// herring: parts of a session's construction that depend neither on elements nor on policies.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CONSTRUCTION_HPP
#define HERRING_SESSION_CONSTRUCTION_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/layout.hpp"
#include "herring/world.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// Announces the current exception, which ended a reducer's construction or another collective call, to all ranks, then rethrows
/// it.
[[noreturn]] HERRING_SEPARABLE void announce_and_rethrow(world& ranks,
                                                         char const* operation = "construction");

/// The sizes of tensors; their sum is at most `most`, or it is a `bad_argument` of this rank.
HERRING_SEPARABLE fixed_array<std::size_t> element_counts(layout const& tensors, std::size_t most, int rank);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/construction.hpp"
#endif

#endif // HERRING_SESSION_CONSTRUCTION_HPP
