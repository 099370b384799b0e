// training: what happened when in a step: a trace policy for the buckets, and the program's own phases.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_TIMELINE_HPP
#define HERRING_EXAMPLES_TRAINING_TIMELINE_HPP

#include <herring/control/gather_result.hpp>
#include <herring/trace/trace.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace training {

/// Nanoseconds of a clock that all processes of one machine share.
inline std::int64_t now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

enum class activity : std::uint32_t { forward, backward, bucket, waiting, update };

/// One bar of the timeline. Plain bytes: it travels from rank to rank as it is.
struct interval {
    std::uint32_t step;
    activity what;
    std::uint32_t index; ///< layer of a forward or backward pass, or bucket
    std::uint32_t rank;
    std::int64_t begin_ns;
    std::int64_t end_ns;
};

/// A trace policy of this program's own: notes when each bucket left and when its sum was back.
///
/// The reducer calls it from the thread that calls `ready` and from the thread that moves the bytes, so a
/// note takes its place with one atomic addition. Read it when `wait` has returned.
class bucket_trace {
  public:
    using axis = herring::axes::trace;

    void operator()(herring::trace_event event, std::uint32_t bucket) noexcept {
        if (event != herring::trace_event::bucket_submitted && event != herring::trace_event::bucket_reduced)
            return;
        std::size_t const place = used_.fetch_add(1, std::memory_order_relaxed);
        if (place < notes_.size()) notes_[place] = {event, bucket, now_ns()};
    }

    /// Moves the notes of this step to the end of `out`, and starts anew.
    void take(std::uint32_t step, std::uint32_t rank, std::vector<interval>& out) {
        std::size_t const used = std::min(used_.exchange(0), notes_.size());
        for (note const& left : std::span(notes_).first(used))
            for (note const& back : std::span(notes_).first(used))
                if (left.event == herring::trace_event::bucket_submitted &&
                    back.event == herring::trace_event::bucket_reduced && left.bucket == back.bucket)
                    out.push_back({step, activity::bucket, left.bucket, rank, left.at_ns, back.at_ns});
    }

  private:
    struct note {
        herring::trace_event event;
        std::uint32_t bucket;
        std::int64_t at_ns;
    };
    std::array<note, 128> notes_{}; // 64 buckets
    std::atomic<std::size_t> used_{0};
};
static_assert(herring::trace_policy<bucket_trace>);

/// One step as all ranks lived it.
struct step_record {
    std::uint32_t step = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::vector<interval> bars;
};

/// Picks, of all the steps that the ranks recorded, the one of median length.
inline step_record median_step(herring::gather_result const& from_ranks) {
    std::vector<step_record> steps;
    for (std::span<std::byte const> const bytes : from_ranks)
        for (std::size_t at = 0; at + sizeof(interval) <= bytes.size(); at += sizeof(interval)) {
            interval bar;
            std::memcpy(&bar, bytes.data() + at, sizeof bar);
            if (bar.step >= steps.size()) steps.resize(bar.step + 1);
            step_record& step = steps[bar.step];
            step.begin_ns = step.bars.empty() ? bar.begin_ns : std::min(step.begin_ns, bar.begin_ns);
            step.end_ns = std::max(step.end_ns, bar.end_ns);
            step.step = bar.step;
            step.bars.push_back(bar);
        }
    if (steps.empty()) throw std::runtime_error("no step was recorded");
    auto const middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end(), [](step_record const& a, step_record const& b) {
        return a.end_ns - a.begin_ns < b.end_ns - b.begin_ns;
    });
    return *middle;
}

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_TIMELINE_HPP
