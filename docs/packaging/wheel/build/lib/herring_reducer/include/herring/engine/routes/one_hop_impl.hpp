// herring: set-up of the memory of one hop.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_ONE_HOP_IMPL_HPP
#define HERRING_ENGINE_ROUTES_ONE_HOP_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/engine/routes/one_hop.hpp"
#include "herring/engine/state.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE one_hop_windows::one_hop_windows(engine_state& state, plan const& from,
                                                   std::span<std::byte>& staging)
    : pairs(from.has_one_hop() ? state.peers.size() : 0),
      slot_memory(slot_row::taken_from(staging, pairs.size() * exchange_window::size,
                                       from.parts.bytes(from.hop_slot_elements()))),
      stages(state.is_staged() && pairs.size() > 0
                 ? slot_row::taken_from(staging, plan::one_hop_stages(), slot_memory.bytes)
                 : slot_memory),
      stale(pairs.size()) {}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_ONE_HOP_IMPL_HPP
