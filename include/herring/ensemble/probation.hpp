// herring: which members have been late so often that nobody waits for them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_PROBATION_HPP
#define HERRING_ENSEMBLE_PROBATION_HPP

#include "herring/base/config.hpp"
#include "herring/quorum/quorum.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Probation of one member: entered after `probation_after` requests in a row that it was late for, left after
/// `probation_left_after` in a row that it was in time for.
class probation {
  public:
    bool on() const noexcept { return on_; }

    /// It was in time for a request. True: it leaves probation.
    bool in_time(quorum_tuning const& tuning) noexcept {
        late_ = 0;
        if (!on_ || ++in_time_ < tuning.probation_left_after) return false;
        *this = {};
        return true;
    }
    /// It was late for a request. True: it enters probation.
    bool late(quorum_tuning const& tuning) noexcept {
        in_time_ = 0;
        if (on_ || tuning.probation_after == 0 || ++late_ < tuning.probation_after) return false;
        late_ = 0;
        on_ = true;
        return true;
    }

  private:
    std::uint32_t late_ = 0, in_time_ = 0; // in a row
    bool on_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_PROBATION_HPP
