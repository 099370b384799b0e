// herring: a refusal by somebody who did not prove to be the frontend, and when a member believes it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_UNVERIFIED_REFUSAL_HPP
#define HERRING_ENSEMBLE_UNVERIFIED_REFUSAL_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <string>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Anyone could say it, so it ends nothing by itself; but a member
/// whose secret is wrong hears nothing else. It is believed once it was said three times, over two seconds.
class unverified_refusal {
  public:
    /// Whether it is believed now.
    HERRING_SETUP bool said(std::string const& words, time_point now) {
        if (words != words_) {
            words_ = words;
            times_ = 0;
            first_ = now;
        }
        return ++times_ >= least && now - first_ >= period;
    }

  private:
    static constexpr int least = 3;
    static constexpr std::chrono::seconds period{2};

    std::string words_{};
    int times_ = 0;
    time_point first_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_UNVERIFIED_REFUSAL_HPP
