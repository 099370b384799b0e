// herring: a wait with work in it: quanta of a task as long as they fit, then the rest of the wait; and what came of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GAPS_WORKER_HPP
#define HERRING_GAPS_WORKER_HPP

#include "herring/base/config.hpp"
#include "herring/gaps/forecast.hpp"
#include "herring/gaps/report.hpp"
#include "herring/gaps/task.hpp"

#include <algorithm>
#include <chrono>

#include <sched.h>

namespace HERRING_NAMESPACE::detail {

/// One place in a step where a thread waits. `Clock`: steady_clock, or a test's.
template <class Clock> class gap_worker {
  public:
    using time_point = typename Clock::time_point;

    /// `arrived()`: whether there is nothing to wait for any more; `rest()`: waits for it, and returns whether it came. No quantum
    /// begins that might not end before `deadline`.
    template <gap_task Task, class Arrived, class Rest>
    void wait(Task& task, Arrived const& arrived, Rest const& rest, time_point deadline) {
        using std::chrono::nanoseconds;
        nanoseconds const stated = task.quantum();
        time_point const begin = Clock::now();
        time_point now = begin;
        bool late = false;
        nanoseconds used{0};
        if (!arrived())
            while (forecast_.fits(now - begin, stated) && deadline - now > forecast_.quantum(stated)) {
                bool const worked = task.next();
                time_point const after = Clock::now();
                nanoseconds const took = after - now;
                late = arrived();
                if (worked) {
                    forecast_.quantum_took(took);
                    ++report_.quanta;
                }
                if (late) {
                    if (!worked)
                        late = false, now = after; // it has looked only
                    else
                        note_late(took);
                    break;
                }
                now = after;
                if (!worked) break;
                used += took;
                ::sched_yield(); // the thread that moves the bytes may have come to be on this core
            }
        bool const came = rest();
        // Of a late quantum it is not known when within it the gap ended.
        nanoseconds const gap = (late ? now : Clock::now()) - begin;
        forecast_.gap_took(gap);
        report_.gaps += gap;
        report_.used += used;
        if (came) ++report_.steps;
    }

    gap_report const& report() const noexcept { return report_; }
    gap_forecast const& forecast() const noexcept { return forecast_; }

  private:
    void note_late(std::chrono::nanoseconds took) noexcept {
        ++report_.late;
        report_.lost += took;
        report_.most_lost = std::max(report_.most_lost, took);
    }

    gap_forecast forecast_;
    gap_report report_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_GAPS_WORKER_HPP
