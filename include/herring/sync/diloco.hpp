// herring: the sync policy `diloco<h, outer>`: an outer optimizer moves all ranks' weights by what each did in h steps.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_DILOCO_HPP
#define HERRING_SYNC_DILOCO_HPP

#include "herring/base/config.hpp"
#include "herring/sync/every.hpp"
#include "herring/sync/sync.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::sync {

/// As `every<Period>`, but what all ranks go on from is not the mean of their weights: it is a step of `Outer` from where they
/// began, the anchor, with the gradient anchor − mean. Who sums a chunk makes the step, and keeps its momentum.
///
/// Memory:  the anchor, once a node; the state of `Outer` at whoever sums, as of an optimizer.
/// Example: `herring::sync::diloco<64, herring::optimizer::nesterov>`, with a rate of 0.7
/// Source:  Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023.
template <std::uint64_t Period, class Outer> class diloco : public every<Period> {
  public:
    static constexpr sync_facts facts{.outer = true};
    using outer = Outer;
};

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_DILOCO_HPP
