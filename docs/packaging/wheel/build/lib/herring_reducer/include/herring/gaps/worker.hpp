// herring: work in gaps: quanta of a task while a thread waits, the forecast of gaps, and the report.
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

/// Work that is done a quantum at a time; each quantum continues where the previous one ended.
///
/// `quantum()`: the longest time of one `next()`. After a quantum that took longer, the forecast expects
/// longer ones.
/// `next()`:    does a quantum, on the waiting thread. False: nothing to do now; the next step asks again. It
///              must not call the reducer (`bad_state`).
template <class Task>
concept gap_task = requires(Task& task) {
    { task.quantum() }
    noexcept->std::convertible_to<std::chrono::nanoseconds>;
    { task.next() }
    noexcept->std::same_as<bool>;
};

/// Report on the waits of one `in_gaps` since its construction. A gap is the part of a wait before the
/// results arrive.
struct gap_report {
    std::uint64_t steps = 0;          ///< waits that ended without a failure
    std::uint64_t quanta = 0;         ///< quanta of the task
    std::uint64_t late = 0;           ///< quanta during which the results arrived: at most one a step
    std::chrono::nanoseconds gaps{0}; ///< all gaps; one with a late quantum counts until that quantum began
    std::chrono::nanoseconds used{0}; ///< part of the gaps used by quanta that were not late
    /// Upper bound on the time lost by all steps: the length of late quanta, as if results had arrived at
    /// their begin.
    std::chrono::nanoseconds lost{0};
    std::chrono::nanoseconds most_lost{0}; ///< the same for one step

    /// Returns the share of the gaps that the task has used, 0 to 1.
    double share() const noexcept {
        return gaps.count() > 0 ? static_cast<double>(used.count()) / static_cast<double>(gaps.count()) : 0;
    }
    /// Returns an upper bound on the time that a step lost on average.
    std::chrono::nanoseconds lost_by_step() const noexcept {
        return std::chrono::nanoseconds(steps == 0 ? 0 : lost.count() / static_cast<std::int64_t>(steps));
    }

    friend bool operator==(gap_report const&, gap_report const&) = default;
};

/// Returns "100 steps: 812.0 ms of gaps, 61.3 % used by 9210 quanta; 4 were late; a step lost at most 1.9 us,
/// and none more than 88.0 us".
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

/// Predicts the length of a gap that comes once a step, and of the quanta of one task.
///
/// A gap is predicted to last as long as the shortest of the last 8: regular gaps are used to their end,
/// irregular ones up to the shortest. Before 8 gaps there is no prediction. A quantum is predicted to last as
/// long as the task states, or as its longest measured one, which decays by an eighth with each quantum and
/// each gap, so that one delayed quantum does not end the work for good.
class gap_forecast {
  public:
    using duration = std::chrono::nanoseconds;
    static constexpr std::size_t kept = 8;

    /// Returns the predicted length of the next gap; 0: no prediction.
    duration gap() const noexcept { return seen_ < kept ? duration{0} : *std::ranges::min_element(gaps_); }
    /// Returns the predicted length of the next quantum of a task that states `stated`.
    duration quantum(duration stated) const noexcept { return std::max({stated, longest_, duration{1}}); }
    /// True if a quantum that begins `since_begin` after the begin of the gap ends within the gap.
    bool fits(duration since_begin, duration stated) const noexcept {
        return quantum(stated) <= gap() - since_begin;
    }

    void quantum_took(duration measured) noexcept {
        forget();
        longest_ = std::max(longest_, measured);
    }
    /// Takes the length of a gap, or the time that it lasted at least.
    void gap_took(duration measured) noexcept {
        forget();
        gaps_[seen_ % kept] = measured;
        if (++seen_ == 2 * kept) seen_ = kept;
    }

  private:
    void forget() noexcept { longest_ -= longest_ / 8; }

    std::array<duration, kept> gaps_{};
    std::size_t seen_ = 0; // below 2 · kept: the next place is seen_ % kept
    duration longest_{0};  // longest quantum, decayed
};

/// One place in a step where a thread waits. `Clock`: steady_clock, or that of a test.
template <class Clock> class gap_worker {
  public:
    using time_point = typename Clock::time_point;

    /// Waits, and does quanta of `task` as long as they fit into the gap. `arrived()`: true when the results
    /// are here; `rest()`: waits for them, true if they arrived. Begins no quantum that might not end before
    /// `deadline`.
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
                        late = false, now = after; // `next` did nothing
                    else
                        note_late(took);
                    break;
                }
                now = after;
                if (!worked) break;
                used += took;
                ::sched_yield(); // the thread that moves the bytes may be on this core
            }
        bool const came = rest();
        // When within a late quantum the gap ended is not known.
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
