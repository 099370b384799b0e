// herring: set-up of the memory of two hops.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_TWO_HOP_IMPL_HPP
#define HERRING_ENGINE_ROUTES_TWO_HOP_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/engine/routes/two_hop.hpp"
#include "herring/engine/state.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE two_hop_windows::two_hop_windows(engine_state& state, plan const& from,
                                                   std::span<std::byte>& staging)
    : pairs(state.peers.size()), results(pairs.size() * from.window()), ready(pairs.size()),
      window(from.window()), ordered(!from.has_equal_shares()), stale(pairs.size()) {
    std::size_t const bytes = from.parts.bytes(from.slot_elements());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        int const rank = state.peers[i].rank;
        pair& with = pairs[i];
        with.push_cursor = chunk_cursor(state.who.contributes ? state.who.chunks_with(rank) : chunk_stream{},
                                        from.roles.server(state.who.map.node(rank)));
        with.pushes = push_window(window);
        with.served = serve_window(window);
        with.slot_memory = slot_row::taken_from(staging, window, bytes);
        // Parts that are sent in place need no stage; arithmetic on nullptr would be undefined.
        with.stages = state.is_staged() ? slot_row::taken_from(staging, window, bytes) : with.slot_memory;
    }
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_TWO_HOP_IMPL_HPP
