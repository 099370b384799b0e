// herring: the sync policy `post_local<warm, k>`: weights are averaged in every step at first, then in each k-th.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_POST_LOCAL_HPP
#define HERRING_SYNC_POST_LOCAL_HPP

#include "herring/base/config.hpp"
#include "herring/sync/every.hpp"
#include "herring/sync/sync.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::sync {

/// `Warm` steps that all exchange, then one in `Period`: while weights still move fast, replicas stay together.
///
/// Source: Lin, Stich, Patel and Jaggi, ICLR 2020 (post-local SGD).
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

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_POST_LOCAL_HPP
