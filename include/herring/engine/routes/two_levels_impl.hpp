// herring: set-up of the memory of two levels.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_TWO_LEVELS_IMPL_HPP
#define HERRING_ENGINE_ROUTES_TWO_LEVELS_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/engine/routes/two_levels.hpp"
#include "herring/engine/state.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE two_level_windows::two_level_windows(engine_state& state, plan const& from,
                                                       std::span<std::byte>& staging)
    : links(from.has_two_levels() && !state.peers.empty() ? from.near_nodes() + from.far_nodes() : 0),
      link_of_peer(links.empty() ? 0 : state.peers.size()), near(links.empty() ? 0 : from.near_nodes()),
      results(links.size() * from.two_level_window()), chunks(links.empty() ? 0 : from.two_level_window()),
      ready(near), rack_parts(from.rack_parts), line_elements(from.line_elements),
      stale(link_of_peer.size()) {
    if (links.empty()) return;
    std::uint32_t const window = from.two_level_window();
    std::size_t const bytes = from.parts.bytes(from.two_level_elements()),
                      share = rack_parts.bytes(from.rack_share_elements(from.two_level_elements()));
    int const rack = state.who.map.rack(state.who.node), nodes = static_cast<int>(near) + 1;
    std::size_t next[] = {0, near};
    for (int node = 0; node < state.who.nodes(); ++node) {
        bool const is_near = state.who.map.rack(node) == rack;
        if (node == state.who.node || (!is_near && node % nodes != state.who.node % nodes)) continue;
        std::size_t const place = next[is_near ? 0 : 1]++;
        link& with = links[place];
        with.node = node;
        with.peer = state.who.handler(node, {});
        link_of_peer[with.peer] = static_cast<std::uint32_t>(place);
        with.cursor = chunk_cursor(state.who.own_chunks(), server_id{node % nodes});
        with.pushes = push_window(window);
        with.served = serve_window(window);
        with.slot_memory = slot_row::taken_from(staging, window, is_near ? bytes : share);
        // Parts that are sent in place need no stage; arithmetic on nullptr would be undefined.
        with.stages =
            is_near && state.is_staged() ? slot_row::taken_from(staging, window, bytes) : with.slot_memory;
    }
    sums = slot_row::taken_from(staging, window, rack_parts.bytes(from.two_level_elements()));
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_TWO_LEVELS_IMPL_HPP
