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

#include <cstddef>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Announces the current exception, which ended a reducer's construction or another collective call, to all ranks, then rethrows
/// it.
[[noreturn]] HERRING_SEPARABLE void announce_and_rethrow(world& ranks,
                                                         char const* operation = "construction");

/// Compares what this rank is about to be, `as`, with its role in the world, and the nodes' roles by the placement with theirs.
///
/// Errors: `bad_state`, of this rank alone: a server that constructs a reducer, a worker that serves; `bad_argument`, the same on
///         every rank: a placement that has no use for the world's servers, or that lacks them.
HERRING_SEPARABLE void check_roles(world& ranks, role as, std::string_view placement, bool dedicated,
                                   roles const& assigned, topology const& map);

/// The sizes of tensors; their sum is at most `most`, or it is a `bad_argument` of this rank.
HERRING_SEPARABLE fixed_array<std::size_t> element_counts(layout const& tensors, std::size_t most, int rank);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/session/construction_impl.hpp"
#endif

#endif // HERRING_SESSION_CONSTRUCTION_HPP
