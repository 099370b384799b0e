// herring: parts of a session's construction that depend neither on elements nor on policies.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CONSTRUCTION_HPP
#define HERRING_SESSION_CONSTRUCTION_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Posts to one peer, at most: two windows of two hops (pushes and results), one window of one hop and one of
/// dissemination where a bucket may take these, two of two levels, and some that are complete but not yet
/// polled.
///
/// Lifetime: as `peers`.
constexpr transport_needs transport_needs_of(plan const& from, std::span<int const> peers,
                                             std::chrono::milliseconds timeout = usual_timeout) noexcept {
    std::size_t const disseminated = from.dissemination_message_bytes();
    std::size_t const slotted = from.parts.bytes(from.slot_elements()),
                      unslotted = from.unslotted_elements() * from.element_bytes;
    std::size_t const posts = 2 * from.window() + (from.has_one_hop() ? plan::one_hop_window() : 0) +
                              (disseminated > 0 ? plan::dissemination_window() : 0) +
                              (from.has_two_levels() ? 2 * from.two_level_window() : 0) + 4;
    return {.peers = peers,
            .receives_per_peer = posts,
            .sends_per_peer = posts,
            .largest_message = std::max({slotted, unslotted, disseminated, from.two_level_message()}),
            .timeout = timeout};
}

/// Announces the current exception, which ended a reducer's construction or another collective call, to all
/// ranks, then rethrows it.
[[noreturn]] HERRING_SEPARABLE void announce_and_rethrow(world& ranks,
                                                         char const* operation = "construction");

/// Compares `as`, the role that this rank is constructed for, with its role in the world, and the nodes'
/// roles by the placement with those of their ranks.
///
/// Errors: `bad_state`, of this rank alone: a server that constructs a reducer, a worker that serves;
///         `bad_argument`, the same on every rank: a placement that has no use for the world's servers, or
///         that lacks them.
HERRING_SEPARABLE void check_roles(world& ranks, role as, std::string_view placement, bool dedicated,
                                   roles const& assigned, topology const& map);

/// The sizes of tensors; their sum is at most `most`, or it is a `bad_argument` of this rank.
HERRING_SEPARABLE fixed_array<std::size_t> element_counts(layout const& tensors, std::size_t most, int rank);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/session/construction_impl.hpp"
#endif

#endif // HERRING_SESSION_CONSTRUCTION_HPP
