// herring: what a reducer does once, whatever its elements and policies are.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CONSTRUCTION_HPP
#define HERRING_SESSION_CONSTRUCTION_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/layout.hpp"
#include "herring/plan/topology.hpp"
#include "herring/step/call_mark.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The exception that is being handled ended a reducer's construction: the others must not wait for this rank.
[[noreturn]] HERRING_SEPARABLE void tell_and_rethrow(world& ranks);

/// The ranks of other nodes that `rank` exchanges chunks with, ascending.
HERRING_SEPARABLE std::vector<int> peers_of(topology const& map, int rank);

/// The sizes of tensors; their sum is at most `most`, or it is a `bad_argument` of this rank.
HERRING_SEPARABLE fixed_array<std::size_t> counts_of(layout const& tensors, std::size_t most, int rank);

/// Refuses a call that finds another one under way. That one goes on, so nothing of the reducer is touched.
[[noreturn]] HERRING_SEPARABLE void refuse_call(call_mark::taken taken, int rank, char const* operation);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/construction.hpp"
#endif

#endif // HERRING_SESSION_CONSTRUCTION_HPP
