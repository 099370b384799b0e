// herring: how long a gap will be, from the last ones at its place, and whether a quantum of work fits in. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GAPS_FORECAST_HPP
#define HERRING_GAPS_FORECAST_HPP

#include "herring/base/config.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// Predicts gaps that come once a step, and the quanta of one task.
///
/// A gap is taken to last as long as the shortest of the last 8: those that come like a clock are used to their end, and
/// those that do not, as far as all of the last ones went. Before there are 8 nothing is predicted.
/// A quantum is taken to last as long as the task says, or as long as it did lately: the longest, of which an eighth is forgotten
/// with each quantum and each gap, so that one that was held up once does not end the work for good.
class gap_forecast {
  public:
    using duration = std::chrono::nanoseconds;
    static constexpr std::size_t kept = 8;

    /// How long the next gap lasts; 0 when nothing is known of it.
    duration gap() const noexcept { return seen_ < kept ? duration{0} : *std::ranges::min_element(gaps_); }
    /// How long the next quantum lasts, of a task that says `stated`.
    duration quantum(duration stated) const noexcept { return std::max({stated, longest_, duration{1}}); }
    /// Whether a quantum that begins so long after the gap did ends within it.
    bool fits(duration since_begin, duration stated) const noexcept {
        return quantum(stated) <= gap() - since_begin;
    }

    void quantum_took(duration measured) noexcept {
        forget();
        longest_ = std::max(longest_, measured);
    }
    /// Of which it is known how long it lasted, or for how long it lasted at least.
    void gap_took(duration measured) noexcept {
        forget();
        gaps_[seen_ % kept] = measured;
        if (++seen_ == 2 * kept) seen_ = kept;
    }

  private:
    void forget() noexcept { longest_ -= longest_ / 8; }

    std::array<duration, kept> gaps_{};
    std::size_t seen_ = 0; // below 2 · kept: the next place is seen_ % kept
    duration longest_{0};  // quantum
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_GAPS_FORECAST_HPP
