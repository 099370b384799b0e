// herring: the sync policy `every<k>`: weights are averaged in each k-th step.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_EVERY_HPP
#define HERRING_SYNC_EVERY_HPP

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

/// Each rank updates its own weights; after steps k, 2k, 3k, ... all hold the mean. With all ranks and equal shares of the
/// data it is FedAvg.
///
/// Cost:   1/k of the messages and bytes of an exchange in every step.
/// Source: McMahan et al., AISTATS 2017; Stich, ICLR 2019 (local SGD).
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

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_EVERY_HPP
