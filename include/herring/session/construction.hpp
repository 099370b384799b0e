// herring: parts of a session's construction that depend neither on elements nor on policies.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CONSTRUCTION_HPP
#define HERRING_SESSION_CONSTRUCTION_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/layout.hpp"
#include "herring/plan/topology.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Announces the current exception, which ended a reducer's construction, to all ranks, then rethrows it.
[[noreturn]] HERRING_SEPARABLE void announce_and_rethrow(world& ranks);

/// The ranks of other nodes that `rank` exchanges chunks with, ascending.
HERRING_SEPARABLE std::vector<int> peers_of(topology const& map, int rank);

/// The sizes of tensors; their sum is at most `most`, or it is a `bad_argument` of this rank.
HERRING_SEPARABLE fixed_array<std::size_t> element_counts(layout const& tensors, std::size_t most, int rank);

/// Throws that a reducer has more buckets or peers than a message can name.
[[noreturn]] HERRING_SEPARABLE void throw_too_many(std::size_t buckets, std::size_t peers, std::size_t most,
                                                   int rank);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/construction.hpp"
#endif

#endif // HERRING_SESSION_CONSTRUCTION_HPP
