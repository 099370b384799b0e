// herring: set-up of the memory of dissemination.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_DISSEMINATION_IMPL_HPP
#define HERRING_ENGINE_ROUTES_DISSEMINATION_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/engine/routes/dissemination.hpp"
#include "herring/engine/state.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE dissemination_windows::dissemination_windows(engine_state&, plan const& from,
                                                               std::span<std::byte>& staging)
    : rounds(from.dissemination_buffer_bytes() > 0 ? from.dissemination_rounds() : 0),
      buffers(slot_row::taken_from(staging, window, from.dissemination_buffer_bytes())),
      arrivals(window * rounds),
      begins(rounds > 0 ? plan::dissemination_stages() * (static_cast<std::size_t>(from.nodes) + 1) : 0) {}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_DISSEMINATION_IMPL_HPP
