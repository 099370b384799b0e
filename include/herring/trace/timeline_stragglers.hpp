// herring: the ranks that submit late, if any, by the timelines of all ranks on one clock.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_STRAGGLERS_HPP
#define HERRING_TRACE_TIMELINE_STRAGGLERS_HPP

#include "herring/base/config.hpp"
#include "herring/trace/timeline_data.hpp"
#include "herring/trace/timeline_flights.hpp"
#include "herring/trace/timeline_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

/// Compares when ranks submit the same bucket, on rank 0's clock; neither network nor sums affect that time.
///
///     auto const all = herring::gather_timelines(reduce.trace()); // empty but on rank 0
///     if (!all.empty()) std::puts(herring::timeline_stragglers(all).text().c_str());
///
/// Cost:    O(records · log records); allocates.
class timeline_stragglers {
  public:
    struct of_rank {
        int rank = 0;
        timeline_times lateness{}; ///< ns: submission − (lower) median of all ranks' submissions
        std::size_t last = 0;      ///< buckets that this rank submitted last
        bool is_slow = false;
    };

    /// Takes the timelines of one reducer. Only buckets that all timelines have count, and of those that all
    /// ranks submit in one call, such as the parts of a split bucket, the first.
    HERRING_SETUP explicit timeline_stragglers(std::span<timeline_data const> all) {
        std::map<std::uint32_t, std::vector<std::int64_t>> submissions;
        std::map<std::uint32_t, std::size_t> behind; // execution → ranks that submitted it behind another one
        for (timeline_data const& of : all) {
            aligned_ = aligned_ && (of.rank == 0 || of.is_aligned());
            bound_ns_ = std::max(bound_ns_, static_cast<double>(of.bound_ns()));
            detail::timeline_flights const found(of);
            for (detail::timeline_flight const& f : found.flights)
                submissions[f.execution].push_back(of.common_ns(f.of.begin));
            count_behind(of, behind);
        }
        by_rank_.resize(all.size());
        std::vector<std::vector<double>> late(all.size());
        for (auto const& [execution, times] : submissions) {
            if (times.size() != all.size() || behind[execution] == all.size()) continue;
            ++buckets_;
            std::vector<std::int64_t> sorted = times;
            std::sort(sorted.begin(), sorted.end());
            std::int64_t const median = sorted[(sorted.size() - 1) / 2];
            for (std::size_t i = 0; i < times.size(); ++i)
                late[i].push_back(static_cast<double>(times[i] - median));
            ++by_rank_[static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin())]
                  .last;
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            by_rank_[i].rank = all[i].rank;
            by_rank_[i].lateness = timeline_times::of(std::move(late[i]));
        }
        find_slow();
    }

    std::vector<of_rank> const& by_rank() const noexcept { return by_rank_; }
    /// Returns the number of compared buckets.
    std::size_t buckets() const noexcept { return buckets_; }

    /// Returns the slow ranks, and a line for each rank, as text.
    HERRING_SETUP std::string text() const {
        std::string out;
        if (buckets_ == 0) return "no bucket was submitted by all ranks\n";
        if (!aligned_) return "the ranks' clocks were not compared: nothing can be said of who is behind\n";
        std::size_t slow = 0;
        for (of_rank const& r : by_rank_)
            if (r.is_slow) {
                ++slow;
                print(out, "rank %d is behind: %.3f ms in the median of %zu buckets, last in %zu\n", r.rank,
                      r.lateness.median * 1e-6, buckets_, r.last);
            }
        if (slow == 0) print(out, "no rank is behind the others, in %zu buckets\n", buckets_);
        for (of_rank const& r : by_rank_)
            print(out, "  rank %d: submits %+.3f ms from the median (most %+.3f), last in %zu\n", r.rank,
                  r.lateness.median * 1e-6, r.lateness.most * 1e-6, r.last);
        return out;
    }

  private:
    // Counts submissions that follow another one without a tensor or a copy that became ready in between: the
    // parts of a bucket that the plan splits. They are no times of their own.
    HERRING_SETUP static void count_behind(timeline_data const& of,
                                           std::map<std::uint32_t, std::size_t>& to) {
        bool is_behind = false;
        for (timeline_record const& r : of.records)
            if (r.what == trace_event::tensor_ready || r.what == trace_event::to_host_end)
                is_behind = false;
            else if (r.what == trace_event::bucket_submitted)
                to[r.execution] += std::exchange(is_behind, true);
    }
    // A rank is slow if it is last in more than three of four buckets, by more than the error of the clocks
    // and the spread of the others. Among equal ranks each is last in one of n buckets, by the delay of a
    // scheduler.
    HERRING_SETUP void find_slow() {
        if (!aligned_ || buckets_ < 4 || by_rank_.size() < 2) return;
        for (of_rank& r : by_rank_) {
            std::vector<double> others;
            for (of_rank const& o : by_rank_)
                if (o.rank != r.rank) others.push_back(std::abs(o.lateness.median));
            std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2),
                             others.end());
            double const usual = others[others.size() / 2];
            r.is_slow = 4 * r.last > 3 * buckets_ &&
                        r.lateness.median > std::max({2 * bound_ns_, 4 * usual, least_ns});
        }
    }
    template <class... Values>
    HERRING_SETUP static void print(std::string& to, char const* format, Values... values) {
        char line[200];
        std::snprintf(line, sizeof line, format, values...);
        to += line;
    }

    static constexpr double least_ns = 200'000; // the delay of a busy core's scheduler among equal ranks

    std::vector<of_rank> by_rank_;
    std::size_t buckets_ = 0;
    double bound_ns_ = 0;
    bool aligned_ = true;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_TIMELINE_STRAGGLERS_HPP
