// herring: the sync policy `hierarchical<k>`: weights are averaged within each node in every step, over all in each k-th.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_HIERARCHICAL_HPP
#define HERRING_SYNC_HIERARCHICAL_HPP

#include "herring/base/config.hpp"
#include "herring/sync/every.hpp"
#include "herring/sync/sync.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::sync {

/// As `every<Period>` between nodes; in the steps between, the ranks of a node hold the mean of their weights.
///
/// Cost:   1/k of the messages and bytes of an exchange in every step; each step a sum in the node's memory.
/// Source: Lin, Stich, Patel and Jaggi, ICLR 2020 (hierarchical local SGD).
template <std::uint64_t Period> class hierarchical : public every<Period> {
  public:
    static constexpr sync_facts facts{.on_nodes = true};
};
static_assert(sync_policy<hierarchical<16>>);

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_HIERARCHICAL_HPP
