// herring: how often something that strangers can cause is told.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_NOTICE_RATE_HPP
#define HERRING_ENSEMBLE_NOTICE_RATE_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <chrono>

namespace HERRING_NAMESPACE::detail::ensembles {

/// `burst` notices at once, and then one each `gap`.
///
/// Threads: one at a time.
class notice_rate {
  public:
    static constexpr std::chrono::seconds gap{1};

    /// Whether one may be told now; then it counts as told.
    bool take(int burst, time_point now) noexcept {
        if (time_point const earliest = now - (burst - 1) * gap; next_ < earliest) next_ = earliest;
        if (next_ > now) return false;
        next_ += gap;
        return true;
    }

  private:
    time_point next_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_NOTICE_RATE_HPP
