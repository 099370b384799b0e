// herring: numbers of a timeline: exposed communication, skew, overlap, gaps, stalls; as text and JSON too.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_REPORT_HPP
#define HERRING_TRACE_TIMELINE_REPORT_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/trace/timeline_data.hpp"
#include "herring/trace/timeline_flights.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::detail {

// Not printf, which writes a decimal comma in some locales.

/// Returns the shortest text that reads back as `value`; "0" if it is not finite.
HERRING_SETUP inline std::string number_text(double value) {
    char room[32]; // at most 24 are used
    return {room, std::to_chars(room, room + sizeof room, std::isfinite(value) ? value : 0.0).ptr};
}
/// The same with at most `digits` ≤ 17 digits.
HERRING_SETUP inline std::string number_text(double value, int digits) {
    char room[32];
    return {room, std::to_chars(room, room + sizeof room, std::isfinite(value) ? value : 0.0,
                                std::chars_format::general, digits)
                      .ptr};
}

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE {

/// Statistics of times in nanoseconds.
struct timeline_times {
    std::size_t count = 0;
    double total = 0, mean = 0, median = 0, least = 0, most = 0;
    double variation = 0; ///< standard deviation ÷ mean: 0: regular, 1: as if at random

    HERRING_SETUP static timeline_times of(std::vector<double> all) {
        timeline_times t;
        t.count = all.size();
        if (all.empty()) return t;
        std::sort(all.begin(), all.end());
        for (double const x : all) t.total += x;
        t.mean = t.total / static_cast<double>(all.size());
        t.median = all[(all.size() - 1) / 2];
        t.least = all.front();
        t.most = all.back();
        double squares = 0;
        for (double const x : all) squares += (x - t.mean) * (x - t.mean);
        if (t.mean > 0) t.variation = std::sqrt(squares / static_cast<double>(all.size())) / t.mean;
        return t;
    }
};

/// The numbers of one rank's timeline; docs/timeline.md has the formulas, with these names.
///
/// A flight is one bucket from its submission (s) to its result (r); a wait is one `wait()` from its begin
/// (b) to its end (e). Only those with both ends in the ring count.
struct timeline_report {
    struct of_bucket {
        std::uint32_t bucket = 0;
        std::uint64_t bytes = 0;
        timeline_times in_flight{};  ///< r − s
        double exposed_ns = 0;       ///< total of all steps
        double bytes_per_second = 0; ///< mean busbw of a flight
    };
    struct of_rank {
        int rank = 0;
        /// Arrival of the rank's last part of a flight − median of all ranks; for this rank its submission.
        /// Arrivals contain the transfer: `timeline_stragglers` finds the rank that is slow.
        timeline_times lateness{};
        double waited_ns = 0;   ///< time in waits for this rank
        std::size_t stalls = 0; ///< parts to this rank that were ready but had no credit
        double stalled_ns = 0;  ///< time until these parts left
    };

    int rank = 0, ranks = 1;
    std::size_t records = 0;
    std::uint64_t lost = 0, damaged = 0, backwards = 0;
    bool uses_tsc = false, clock_jumped = false, aligned = false, drift_corrected = false;
    std::int64_t offset_ns = 0, bound_ns = -1; ///< rank 0's clock against this rank's

    timeline_times step{};    ///< from the end of a wait to the end of the next one
    timeline_times exposed{}; ///< e − b: communication of a step that nothing hides
    double in_flight_ns = 0;  ///< time with at least one flight: the length of the union of all (s, r)
    double hidden = 0;        ///< share of in_flight_ns outside of waits
    timeline_times skew{};    ///< last arrival − median arrival of a flight
    double absorbed = 0;   ///< share of the skew that no wait shows: 1 − Σ min(exposed, skew) ÷ Σ skew
    timeline_times gaps{}; ///< between flights, while nothing is in flight
    timeline_times longest_gap{};       ///< the longest of each step
    timeline_times longest_gap_begin{}; ///< its begin − begin of its step
    timeline_times fold{};              ///< of one chunk
    double bus_bytes_per_second = 0;    ///< Σ bytes · 2(n−1)/n ÷ in_flight_ns
    std::vector<of_bucket> buckets{};
    std::vector<of_rank> by_rank{};
    std::size_t outside = 0; ///< pieces of calls on buffers, which are no buckets and count nowhere above

    timeline_report() = default;
    HERRING_SETUP explicit timeline_report(timeline_data const& of) {
        take_facts(of);
        detail::timeline_flights const found(of);
        outside = found.outside;
        take_steps(found);
        take_buckets(of, found);
        take_ranks(of, found);
        fold = timeline_times::of(found.folds);
    }

    /// Returns the report as some 20 lines of text.
    HERRING_SETUP std::string text() const {
        std::string out;
        line(out, "rank %d of %d: %zu records, times by %s", rank, ranks, records,
             uses_tsc ? "the time-stamp counter" : "the monotonic clock (no invariant time-stamp counter)");
        if (lost > 0)
            line(out, "  %llu older records were replaced: the numbers are of the newest", count(lost));
        if (damaged > 0) line(out, "  %llu records are damaged, and left out", count(damaged));
        if (backwards > 0)
            line(out, "  the ticks went back %llu times; as if no time had passed there", count(backwards));
        if (clock_jumped)
            line(out, "  THE CLOCK JUMPED while this was recorded: times are not to be trusted");
        if (aligned)
            line(out, "  clock: rank 0's is %+.3f us off, to within %.3f us; drift %s",
                 micro(static_cast<double>(offset_ns)), micro(static_cast<double>(bound_ns)),
                 drift_corrected ? "corrected" : "not measured");
        else
            line(out, "  clock: not compared with rank 0's (a rank has no timeline)");
        line(out, "steps: %zu, of %.3f ms (median %.3f)", step.count, milli(step.mean), milli(step.median));
        line(out, "  exposed communication: %.3f ms a step (most %.3f), %.1f %% of it", milli(exposed.mean),
             milli(exposed.most), step.mean > 0 ? 100 * exposed.mean / step.mean : 0.0);
        line(out, "  in flight: %.3f ms in all, of which overlap hides %.1f %%; bus %.3f GB/s in flight",
             milli(in_flight_ns), 100 * hidden, bus_bytes_per_second / 1e9);
        line(out, "  gaps with nothing in flight: %zu, median %.3f ms, most %.3f", gaps.count,
             milli(gaps.median), milli(gaps.most));
        if (longest_gap.count > 0)
            line(out,
                 "  a step's longest: %.3f ms (least %.3f, variation %.2f), %.3f ms after its begin "
                 "(variation %.2f)",
                 milli(longest_gap.mean), milli(longest_gap.least), longest_gap.variation,
                 milli(longest_gap_begin.mean), longest_gap_begin.variation);
        if (skew.count > 0)
            line(out, "  skew of arrivals: %.3f ms a bucket (most %.3f); overlap absorbs %.1f %% of it",
                 milli(skew.mean), milli(skew.most), 100 * absorbed);
        if (fold.count > 0) line(out, "  folds: %zu chunks, %.3f ms in all", fold.count, milli(fold.total));
        for (of_rank const& r : by_rank)
            line(out,
                 "rank %d%s %+.3f ms from the median (most %+.3f); waited for %.3f ms; %zu stalls, %.3f ms",
                 r.rank, r.rank == rank ? ": this one's submission" : ": its parts are here",
                 milli(r.lateness.mean), milli(r.lateness.most), milli(r.waited_ns), r.stalls,
                 milli(r.stalled_ns));
        for (of_bucket const& b : buckets)
            line(out, "bucket %u: %llu bytes, %.3f ms in flight, %.3f exposed in all, bus %.3f GB/s",
                 b.bucket, count(b.bytes), milli(b.in_flight.mean), milli(b.exposed_ns),
                 b.bytes_per_second / 1e9);
        if (outside > 0)
            line(out, "and %zu pieces of calls on buffers, which are counted nowhere above", outside);
        return out;
    }

    /// Returns the report as one JSON object; times in nanoseconds.
    HERRING_SETUP std::string json() const {
        std::string out = "{";
        field(out, "rank", rank);
        field(out, "ranks", ranks);
        field(out, "records", static_cast<double>(records));
        field(out, "lost", static_cast<double>(lost));
        field(out, "damaged", static_cast<double>(damaged));
        field(out, "backwards", static_cast<double>(backwards));
        field(out, "uses_tsc", uses_tsc);
        field(out, "clock_jumped", clock_jumped);
        field(out, "aligned", aligned);
        field(out, "drift_corrected", drift_corrected);
        field(out, "offset_ns", static_cast<double>(offset_ns));
        field(out, "bound_ns", static_cast<double>(bound_ns));
        field(out, "step_ns", step);
        field(out, "exposed_ns", exposed);
        field(out, "in_flight_ns", in_flight_ns);
        field(out, "hidden", hidden);
        field(out, "bus_bytes_per_second", bus_bytes_per_second);
        field(out, "skew_ns", skew);
        field(out, "absorbed", absorbed);
        field(out, "gap_ns", gaps);
        field(out, "longest_gap_ns", longest_gap);
        field(out, "longest_gap_begin_ns", longest_gap_begin);
        field(out, "fold_ns", fold);
        field(out, "outside", static_cast<double>(outside));
        out += "\"by_rank\":[";
        for (of_rank const& r : by_rank) {
            out += '{';
            field(out, "rank", r.rank);
            field(out, "lateness_ns", r.lateness);
            field(out, "waited_ns", r.waited_ns);
            field(out, "stalls", static_cast<double>(r.stalls));
            field(out, "stalled_ns", r.stalled_ns);
            close(out, "},");
        }
        close(out, "],");
        out += "\"buckets\":[";
        for (of_bucket const& b : buckets) {
            out += '{';
            field(out, "bucket", static_cast<double>(b.bucket));
            field(out, "bytes", static_cast<double>(b.bytes));
            field(out, "in_flight_ns", b.in_flight);
            field(out, "exposed_ns", b.exposed_ns);
            field(out, "bytes_per_second", b.bytes_per_second);
            close(out, "},");
        }
        close(out, "],");
        close(out, "}");
        return out;
    }

  private:
    static double micro(double ns) noexcept { return ns / 1e3; }
    static double milli(double ns) noexcept { return ns / 1e6; }
    static unsigned long long count(std::uint64_t n) noexcept { return n; }

    [[gnu::format(printf, 2, 3)]] HERRING_SETUP static void line(std::string& out, char const* format, ...) {
        char room[320];
        std::va_list values;
        va_start(values, format);
        std::vsnprintf(room, sizeof room, format, values);
        va_end(values);
        (out += room) += '\n';
    }
    HERRING_SETUP static void field(std::string& out, char const* name, double value) {
        detail::append(out, {"\"", name, "\":", detail::number_text(value), ","});
    }
    HERRING_SETUP static void field(std::string& out, char const* name, bool value) {
        detail::append(out, {"\"", name, value ? "\":true," : "\":false,"});
    }
    HERRING_SETUP static void field(std::string& out, char const* name, int value) {
        field(out, name, static_cast<double>(value));
    }
    HERRING_SETUP static void field(std::string& out, char const* name, timeline_times const& t) {
        detail::append(out, {"\"", name, "\":{"});
        field(out, "count", static_cast<double>(t.count));
        field(out, "total", t.total);
        field(out, "mean", t.mean);
        field(out, "median", t.median);
        field(out, "least", t.least);
        field(out, "most", t.most);
        field(out, "variation", t.variation);
        close(out, "},");
    }
    // Appends `with` in place of a last comma.
    HERRING_SETUP static void close(std::string& out, char const* with) {
        if (out.back() == ',') out.pop_back();
        out += with;
    }

    HERRING_SETUP void take_facts(timeline_data const& of) {
        rank = of.rank;
        ranks = of.ranks;
        records = of.records.size();
        lost = of.lost;
        damaged = of.damaged;
        backwards = of.backwards;
        uses_tsc = of.uses_tsc;
        clock_jumped = of.clock_jumped;
        aligned = of.is_aligned();
        drift_corrected = of.is_drift_corrected();
        std::int64_t const at = of.records.empty() ? of.begin_ns : of.records.back().ns;
        offset_ns = of.common_ns(at) - at;
        bound_ns = of.bound_ns();
    }

    HERRING_SETUP void take_steps(detail::timeline_flights const& found) {
        std::vector<double> steps, waits, all_gaps, longest, begins;
        for (std::size_t w = 0; w < found.waits.size(); ++w) {
            waits.push_back(found.waits[w].length());
            if (w > 0) steps.push_back(static_cast<double>(found.waits[w].end - found.waits[w - 1].end));
        }
        double in_waits = 0;
        for (detail::timeline_span const& busy : found.busy) {
            in_flight_ns += busy.length();
            for (detail::timeline_span const& w : found.waits) in_waits += busy.shared_with(w);
        }
        hidden = in_flight_ns > 0 ? 1 - in_waits / in_flight_ns : 0;
        // A gap belongs to the step in which it begins.
        for (std::size_t i = 1, w = 0; i < found.busy.size(); ++i) {
            detail::timeline_span const gap{found.busy[i - 1].end, found.busy[i].begin};
            all_gaps.push_back(gap.length());
            bool const new_step = w < found.waits.size() && gap.end > found.waits[w].end;
            while (w < found.waits.size() && gap.end > found.waits[w].end) ++w;
            if (w == 0) continue; // its step began before the first record
            double const begin = static_cast<double>(gap.begin - found.waits[w - 1].end);
            if (new_step || longest.empty()) {
                longest.push_back(gap.length());
                begins.push_back(begin);
            } else if (gap.length() > longest.back()) {
                longest.back() = gap.length();
                begins.back() = begin;
            }
        }
        step = timeline_times::of(std::move(steps));
        exposed = timeline_times::of(std::move(waits));
        gaps = timeline_times::of(std::move(all_gaps));
        longest_gap = timeline_times::of(std::move(longest));
        longest_gap_begin = timeline_times::of(std::move(begins));
    }

    HERRING_SETUP void take_buckets(timeline_data const& of, detail::timeline_flights const& found) {
        double const on_bus = ranks > 1 ? 2.0 * (ranks - 1) / ranks : 1.0;
        std::map<std::uint32_t, std::vector<detail::timeline_flight const*>> sorted;
        double moved = 0;
        for (detail::timeline_flight const& f : found.flights) // not those that a node combined by itself
            if (f.bytes > 0) sorted[f.bucket].push_back(&f);
        for (auto const& [number, flights] : sorted) {
            of_bucket b;
            b.bucket = number;
            b.bytes = number < of.bucket_bytes.size() ? of.bucket_bytes[number] : flights[0]->bytes;
            std::vector<double> lengths;
            for (detail::timeline_flight const* const f : flights) {
                lengths.push_back(f->of.length());
                b.exposed_ns += f->exposed_ns;
                moved += static_cast<double>(b.bytes) * on_bus;
            }
            b.in_flight = timeline_times::of(std::move(lengths));
            if (b.in_flight.mean > 0)
                b.bytes_per_second = static_cast<double>(b.bytes) * on_bus * 1e9 / b.in_flight.mean;
            buckets.push_back(std::move(b));
        }
        if (in_flight_ns > 0) bus_bytes_per_second = moved * 1e9 / in_flight_ns;
    }

    HERRING_SETUP void take_ranks(timeline_data const& of, detail::timeline_flights const& found) {
        std::map<int, of_rank> found_ranks;
        std::map<int, std::vector<double>> late;
        std::vector<double> skews;
        double hidden_skew = 0, all_skew = 0;
        for (detail::timeline_flight const& f : found.flights) {
            if (f.arrivals.empty()) continue;
            std::vector<std::int64_t> times{f.of.begin};
            std::int64_t latest = f.of.begin;
            for (auto const& [peer, ns] : f.arrivals) {
                times.push_back(ns);
                latest = std::max(latest, ns);
            }
            std::sort(times.begin(), times.end());
            std::int64_t const median = times[(times.size() - 1) / 2];
            late[of.rank].push_back(static_cast<double>(f.of.begin - median));
            for (auto const& [peer, ns] : f.arrivals) late[peer].push_back(static_cast<double>(ns - median));
            double const here = static_cast<double>(latest - median);
            skews.push_back(here);
            all_skew += here;
            hidden_skew += here - std::min(here, f.exposed_ns);
        }
        absorbed = all_skew > 0 ? hidden_skew / all_skew : 0;
        skew = timeline_times::of(std::move(skews));
        for (auto& [number, times] : late)
            found_ranks[number].lateness = timeline_times::of(std::move(times));
        for (auto const& [number, ns] : found.waited) found_ranks[number].waited_ns = ns;
        for (auto const& [number, stall] : found.stalls) {
            found_ranks[number].stalls = stall.count;
            found_ranks[number].stalled_ns = stall.ns;
        }
        for (auto& [number, r] : found_ranks) {
            r.rank = number;
            by_rank.push_back(std::move(r));
        }
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_TIMELINE_REPORT_HPP
