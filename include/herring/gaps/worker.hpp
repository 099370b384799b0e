// herring: a wait with work in it: quanta of a task as long as they fit, then the rest of the wait; and what came of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GAPS_WORKER_HPP
#define HERRING_GAPS_WORKER_HPP

#include "herring/base/config.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <sched.h>

namespace HERRING_NAMESPACE {

/// Work that is done a quantum at a time, each of which goes on where the one before ended.
///
/// `quantum()`: for how long one `next()` takes a core at most. One that takes longer is believed less from then on.
/// `next()`:    does a quantum, on the thread that waits. False: there is nothing to do now; it is asked again in the next step.
///              It must not call the reducer (`bad_state`).
template <class Task>
concept gap_task = requires(Task& task) {
    { task.quantum() }
    noexcept->std::convertible_to<std::chrono::nanoseconds>;
    { task.next() }
    noexcept->std::same_as<bool>;
};

/// Of the waits of one `in_gaps`, since it was made. A gap is what of a wait passes before the results are here.
struct gap_report {
    std::uint64_t steps = 0;          ///< waits that ended well
    std::uint64_t quanta = 0;         ///< of the task
    std::uint64_t late = 0;           ///< quanta during which the results came: at most one a step
    std::chrono::nanoseconds gaps{0}; ///< all gaps; of one with a late quantum, until that began
    std::chrono::nanoseconds used{0}; ///< of them, by quanta that were not late
    std::chrono::nanoseconds lost{
        0}; ///< by all steps, at most: what late quanta took, as if the results had come at once
    std::chrono::nanoseconds most_lost{0}; ///< by one step, at most

    /// The share of the gaps that the task has used, 0 to 1.
    double share() const noexcept {
        return gaps.count() > 0 ? static_cast<double>(used.count()) / static_cast<double>(gaps.count()) : 0;
    }
    /// What a step lost on average, at most.
    std::chrono::nanoseconds lost_by_step() const noexcept {
        return std::chrono::nanoseconds(steps == 0 ? 0 : lost.count() / static_cast<std::int64_t>(steps));
    }

    friend bool operator==(gap_report const&, gap_report const&) = default;
};

/// "100 steps: 812.0 ms of gaps, 61.3 % used by 9210 quanta; 4 were late; a step lost at most 1.9 us, and none more than 88.0 us".
inline std::string to_string(gap_report const& of) {
    char text[240];
    std::snprintf(
        text, sizeof text,
        "%llu steps: %.1f ms of gaps, %.1f %% used by %llu quanta; %llu were late; a step lost at most "
        "%.1f us, and none more than %.1f us",
        static_cast<unsigned long long>(of.steps), static_cast<double>(of.gaps.count()) / 1e6,
        100 * of.share(), static_cast<unsigned long long>(of.quanta),
        static_cast<unsigned long long>(of.late), static_cast<double>(of.lost_by_step().count()) / 1e3,
        static_cast<double>(of.most_lost.count()) / 1e3);
    return text;
}

} // namespace HERRING_NAMESPACE

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
