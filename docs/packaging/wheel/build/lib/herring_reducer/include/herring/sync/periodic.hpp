// herring: sync policies with a fixed period: every, post_local, hierarchical and diloco.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_PERIODIC_HPP
#define HERRING_SYNC_PERIODIC_HPP

#include "herring/base/config.hpp"
#include "herring/sync/sync.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

// A need, so that a pack prints one sentence.
template <std::uint64_t Period> struct period_above_zero {
    template <class Pack> struct check {
        static constexpr bool value = Period > 0;
        static_assert(value,
                      "[HRG-Y07] sync: a period is at least 1, and this one is 0; a common slip is 0 for "
                      "never; write the number of steps between two exchanges");
    };
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::sync {

/// Each rank updates its own weights; after steps k, 2k, 3k, ... (k = `Period`) all ranks hold the mean. With
/// all ranks and equal shares of the data this is FedAvg.
///
/// Cost:    1/k of the messages and bytes of an exchange in every step.
/// Source:  McMahan et al., AISTATS 2017; Stich, ICLR 2019 (local SGD).
template <std::uint64_t Period> class every {
  public:
    using axis = axes::sync;
    static constexpr sync_facts facts{};
    using needs = herring::needs<detail::period_above_zero<Period>>;

    constexpr bool due(std::size_t) const noexcept { return (steps_ + 1) % (Period > 0 ? Period : 1) == 0; }
    constexpr void agreed(ballot const&) noexcept { ++steps_; }

  private:
    std::uint64_t steps_ = 0;
};
static_assert(sync_policy<every<4>>);

/// The first `Warm` steps all exchange, then one in `Period` does: replicas stay together while weights still
/// move fast.
///
/// Cost:    that of an exchange in every step at first, then 1/`Period` of it.
/// Source:  Lin, Stich, Patel and Jaggi, ICLR 2020 (post-local SGD).
template <std::uint64_t Warm, std::uint64_t Period> class post_local {
  public:
    using axis = axes::sync;
    static constexpr sync_facts facts{};
    using needs = herring::needs<detail::period_above_zero<Period>>;

    constexpr bool due(std::size_t) const noexcept {
        return steps_ < Warm || (steps_ - Warm + 1) % (Period > 0 ? Period : 1) == 0;
    }
    constexpr void agreed(ballot const&) noexcept { ++steps_; }

  private:
    std::uint64_t steps_ = 0;
};
static_assert(sync_policy<post_local<100, 4>>);

/// `every<Period>` between nodes; after the steps in between, the ranks of a node hold the mean of their
/// weights.
///
/// Cost:    1/`Period` of the messages and bytes of an exchange in every step; each step a sum in the node's
///          memory.
/// Source:  Lin, Stich, Patel and Jaggi, ICLR 2020 (hierarchical local SGD).
template <std::uint64_t Period> class hierarchical : public every<Period> {
  public:
    static constexpr sync_facts facts{.on_nodes = true};
};
static_assert(sync_policy<hierarchical<16>>);

/// `every<Period>` with an outer optimizer: after an exchange all ranks hold the result of a step of `Outer`
/// from the anchor, the weights after the last exchange, with the gradient anchor − mean. The rank that sums
/// a chunk makes the step.
///
/// Memory:  the anchor, once a node; the state of `Outer` on the rank that sums, as for an optimizer.
/// Example: `herring::sync::diloco<64, herring::optimizer::nesterov>`, with a rate of 0.7
/// Source:  Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023.
template <std::uint64_t Period, class Outer> class diloco : public every<Period> {
  public:
    static constexpr sync_facts facts{.outer = true};
    using outer = Outer;
};

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_PERIODIC_HPP
