// herring: when a request goes to a second replica of a member as well.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_HEDGING_HPP
#define HERRING_ENSEMBLE_HEDGING_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/lateness.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace HERRING_NAMESPACE {

/// Hedged requests: a member that has replicas and has not answered after a while is asked a second time, at another replica.
struct hedging_tuning {
    std::uint32_t percent = 5;    ///< of the requests sent, at most as many more; 0: none
    std::uint32_t floor_us = 200; ///< no second request before that
    std::uint32_t samples = 100;  ///< none before as many latencies of the member are known
    std::uint32_t burst = 32;     ///< hedges that may be saved up in quiet times

    friend constexpr bool operator==(hedging_tuning const&, hedging_tuning const&) = default;
};

/// "percent=5 floor_us=200 samples=100 burst=32".
HERRING_SETUP inline std::string to_string(hedging_tuning const& tuning) {
    return "percent=" + std::to_string(tuning.percent) + " floor_us=" + std::to_string(tuning.floor_us) +
           " samples=" + std::to_string(tuning.samples) + " burst=" + std::to_string(tuning.burst);
}

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

/// How long one member is waited for before it is hedged: max(floor, p95 of its last 1,024 latencies).
///
/// Cost:    the percentile is found anew at the first sample that suffices, and at every 32nd from there.
class hedge_delay {
  public:
    /// After `latencies` has got one more.
    void sampled(time_window const& latencies, hedging_tuning const& tuning) noexcept {
        std::uint64_t const first = tuning.samples > 0 ? tuning.samples : 1;
        if (latencies.added() < first || (latencies.added() - first) % refreshed_every != 0) return;
        std::int64_t const p95 = latencies.percentile(95), floor = std::int64_t{tuning.floor_us} * 1000;
        delay_ = p95 > floor ? p95 : floor;
    }
    std::int64_t ns() const noexcept { return delay_; } ///< `never_ns`: too few samples

    static constexpr std::uint64_t refreshed_every = 32;

  private:
    std::int64_t delay_ = never_ns;
};

/// Hedges that may be sent: `percent` of a hedge for every request that is sent, saved up to `burst`.
class hedge_budget {
  public:
    void sent(std::size_t requests, hedging_tuning const& tuning) noexcept {
        std::uint64_t const most = std::uint64_t{tuning.burst} * 100;
        hundredths_ += std::uint64_t{requests} * tuning.percent;
        if (hundredths_ > most) hundredths_ = most;
    }
    /// One that was counted as sent was not: it counts when it is.
    void unsent(hedging_tuning const& tuning) noexcept {
        hundredths_ -= hundredths_ < tuning.percent ? hundredths_ : tuning.percent;
    }
    bool take() noexcept {
        if (hundredths_ < 100) return false;
        hundredths_ -= 100;
        return true;
    }
    /// A hedge that was taken has not been sent.
    void give_back() noexcept { hundredths_ += 100; }

  private:
    std::uint64_t hundredths_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_HEDGING_HPP
