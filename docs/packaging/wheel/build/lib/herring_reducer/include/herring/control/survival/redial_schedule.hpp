// herring: when a rank with a silent control connection opens another one, and how long that may take. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SURVIVAL_REDIAL_SCHEDULE_HPP
#define HERRING_CONTROL_SURVIVAL_REDIAL_SCHEDULE_HPP

#include "herring/base/config.hpp"
#include "herring/control/world_times.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/failure_detector_options.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The times at which a rank connects anew to rank 0: once nothing has got through one way or the other for 2
/// s, and for as long as queues take; for `peer_timeout`, where rank 0 is heard meanwhile: then no rank is
/// about to be given up.
class redial_schedule {
  public:
    /// Notes that this rank has joined, in a world with these times.
    constexpr void begin(failure_detector_options const& times) noexcept {
        times_ = times;
        time_ = resume_step(times_);
    }

    /// True if no attempt may begin yet.
    constexpr bool pauses(time_point now) const noexcept { return now < at_; }
    /// True if the delay in queues is worth a look: nothing has got through for `quiet`.
    constexpr bool suspects(clock::duration quiet) const noexcept { return quiet >= hopeless_after(times_); }
    /// True if an attempt is due. `silence`: since rank 0 was last heard, by whatever way; `delay`: of
    /// messages, compared with an idle network.
    constexpr bool due(clock::duration quiet, clock::duration silence, clock::duration delay) noexcept {
        delay_ = delay;
        clock::duration const most = hopeless_after(times_);
        return quiet >= (silence < most ? clock::duration(times_.peer_timeout) : most) + delay_;
    }
    /// Begins an attempt: returns how long it has to connect. The kernel sends the first packet of a
    /// connection again, so the next attempt may take longer.
    constexpr clock::duration attempt(time_point now) noexcept {
        clock::duration const most = time_ + delay_;
        at_ = now + time_;
        time_ = std::min<clock::duration>(2 * time_, 8 * resume_step(times_));
        return most;
    }
    /// Returns the number of an attempt that has become a connection, from 1 on.
    constexpr std::uint64_t number() noexcept { return ++attempts_; }
    /// The earliest time of the next attempt.
    constexpr time_point next() const noexcept { return at_; }
    /// How long a connection has until rank 0 has put it in place.
    constexpr clock::duration answer_time() const noexcept { return 4 * resume_step(times_) + delay_; }

    /// Allows another attempt at once: the connection in place is broken.
    constexpr void at_once() noexcept { at_ = {}; }
    /// Notes that another connection took the place at `now`.
    constexpr void carried_on(time_point now) noexcept {
        at_ = now + resume_step(times_);
        time_ = resume_step(times_);
    }

  private:
    failure_detector_options times_{};
    time_point at_{};
    clock::duration time_{}; // for an attempt
    clock::duration delay_{};
    std::uint64_t attempts_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_SURVIVAL_REDIAL_SCHEDULE_HPP
