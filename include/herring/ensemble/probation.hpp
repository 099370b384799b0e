// herring: which members have been late so often that nobody waits for them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_PROBATION_HPP
#define HERRING_ENSEMBLE_PROBATION_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/quorum/quorum.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Probation of one member: entered after `probation_after` requests in a row that it was late for, left after
/// `probation_left_after` in a row that it was in time for.
///
/// A row that misses the end of a grace of microseconds may only have waited for a core. So such a request is no verdict yet: the row
/// may come until `quorum_tuning::late_after_us` after the k-th. One such request at a time is waited for; others that end meanwhile
/// say nothing more of the member, which is away once, not several times.
class probation {
  public:
    bool on() const noexcept { return on_; }

    /// It was in time for a request. True: it leaves probation.
    bool in_time(quorum_tuning const& tuning) noexcept {
        late_ = 0;
        until_ = never_ns;
        if (!on_ || ++in_time_ < tuning.probation_left_after) return false;
        *this = {};
        return true;
    }
    /// It was late for a request. True: it enters probation.
    bool late(quorum_tuning const& tuning) noexcept {
        in_time_ = 0;
        until_ = never_ns;
        if (on_ || tuning.probation_after == 0 || ++late_ < tuning.probation_after) return false;
        late_ = 0;
        on_ = true;
        return true;
    }
    /// A request has ended by time without its row, which is in time until `until`. Where that has passed, for this request or the one
    /// that is waited for, it was late. True: it enters probation.
    bool missed(std::uint64_t request, std::int64_t until, std::int64_t now,
                quorum_tuning const& tuning) noexcept {
        bool const entered = (until <= now || until_ <= now) && late(tuning);
        if (until > now && until_ == never_ns) {
            request_ = request;
            until_ = until;
        }
        return entered;
    }
    /// The row of a request has come. True: probation begins or ends.
    bool came(std::uint64_t request, std::int64_t now, quorum_tuning const& tuning) noexcept {
        if (until_ == never_ns || request != request_) return false;
        return now < until_ ? in_time(tuning) : late(tuning);
    }
    /// The row of a request will not come, which is no verdict.
    void forget(std::uint64_t request) noexcept {
        if (request == request_) until_ = never_ns;
    }
    void forget() noexcept { until_ = never_ns; }

  private:
    std::uint32_t late_ = 0, in_time_ = 0; // in a row
    bool on_ = false;
    std::uint64_t request_ = 0;     // whose row is waited for,
    std::int64_t until_ = never_ns; // if this is a time
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_PROBATION_HPP
