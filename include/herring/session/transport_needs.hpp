// herring: what an engine asks of the transport that it will run over.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_TRANSPORT_NEEDS_HPP
#define HERRING_SESSION_TRANSPORT_NEEDS_HPP

#include "herring/base/config.hpp"
#include "herring/plan/plan.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Posts to one peer, at most: two windows of two hops (pushes and results), one window of one hop, one of
/// dissemination where a bucket may take it, and some that are complete but not yet polled.
///
/// Lifetime: as `peers`.
constexpr transport_needs transport_needs_of(plan const& from, std::span<int const> peers,
                                             std::chrono::milliseconds timeout = usual_timeout) noexcept {
    std::size_t const disseminated = from.dissemination_message_bytes();
    std::size_t const slotted = from.slot_elements() * from.part_element_bytes,
                      unslotted = from.unslotted_elements() * from.element_bytes;
    std::size_t const posts = 2 * from.window() + plan::one_hop_window() +
                              (disseminated > 0 ? plan::dissemination_window() : 0) + 4;
    return {.peers = peers,
            .receives_per_peer = posts,
            .sends_per_peer = posts,
            .largest_message = std::max(std::max(slotted, unslotted), disseminated),
            .timeout = timeout};
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_TRANSPORT_NEEDS_HPP
