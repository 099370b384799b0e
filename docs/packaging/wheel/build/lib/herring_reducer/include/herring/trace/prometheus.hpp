// herring: the numbers of a timeline in the text format of Prometheus.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_PROMETHEUS_HPP
#define HERRING_TRACE_PROMETHEUS_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/machine/files.hpp"
#include "herring/trace/timeline_report.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE {
namespace detail {

/// Gauges of the records in the ring, in Prometheus' text exposition format 0.0.4.
///
/// Shape:   at most 34 series; only the three latest ranks have series of their own.
/// Units:   seconds, bytes, shares from 0 to 1.
class timeline_metrics {
  public:
    HERRING_SETUP explicit timeline_metrics(timeline_report const& of) : of_(of) {
        times("step_seconds", "A step, from the end of one wait to that of the next.", of.step);
        times("exposed_seconds", "A step's communication that nothing hides.", of.exposed);
        times("skew_seconds", "Of a bucket: the last arrival behind the median one.", of.skew);
        times("gap_seconds", "Between buckets, while nothing is in flight.", of.gaps);
        gauge("hidden_ratio", "Share of the time in flight outside of waits.", of.hidden);
        gauge("absorbed_ratio", "Share of the skew that no wait shows.", of.absorbed);
        gauge("bus_bytes_per_second", "Bus bandwidth while buckets are in flight.", of.bus_bytes_per_second);
        gauge("records", "Events in the ring.", static_cast<double>(of.records));
        gauge("records_lost", "Older events that newer ones replaced.", static_cast<double>(of.lost));
        gauge("clock_bound_seconds", "By how much times on rank 0's clock may be off; -1: unknown.",
              of.bound_ns < 0 ? -1 : static_cast<double>(of.bound_ns) * 1e-9);
        gauge("clock_jumped", "1: times are not to be trusted.", of.clock_jumped);
        std::vector<timeline_report::of_rank> late = of.by_rank;
        std::stable_sort(late.begin(), late.end(),
                         [](auto const& a, auto const& b) { return a.lateness.mean > b.lateness.mean; });
        late.resize(std::min<std::size_t>(late.size(), 3));
        peers(
            "late_seconds",
            "How late the parts of a rank come, the way here included, in the mean; the three latest ranks.",
            late, [](auto const& r) { return r.lateness.mean * 1e-9; });
        peers("waited_seconds", "Time in waits while the rank was waited for.", late,
              [](auto const& r) { return r.waited_ns * 1e-9; });
    }
    std::string const& text() const noexcept { return text_; }

  private:
    HERRING_SETUP void head(char const* name, char const* help) {
        append(text_,
               {"# HELP herring_timeline_", name, " ", help, "\n# TYPE herring_timeline_", name, " gauge\n"});
    }
    HERRING_SETUP void line(char const* name, char const* label, std::string const& label_value,
                            double value) {
        append(text_, {"herring_timeline_", name, "{rank=\"", of_.rank});
        if (label != nullptr) append(text_, {"\",", label, "=\"", label_value});
        append(text_, {"\"} ", number_text(value, 9), "\n"});
    }
    HERRING_SETUP void gauge(char const* name, char const* help, double value) {
        head(name, help);
        line(name, nullptr, {}, value);
    }
    HERRING_SETUP void times(char const* name, char const* help, timeline_times const& t) {
        head(name, help);
        line(name, "of", "mean", t.mean * 1e-9);
        line(name, "of", "median", t.median * 1e-9);
        line(name, "of", "most", t.most * 1e-9);
    }
    template <class Value>
    HERRING_SETUP void peers(char const* name, char const* help,
                             std::vector<timeline_report::of_rank> const& of, Value const& value) {
        head(name, help);
        for (auto const& r : of) line(name, "peer", detail::text({r.rank}), value(r));
    }

    timeline_report const& of_;
    std::string text_;
};

} // namespace detail

/// Replaces a file by the numbers of a report, at once, as collectors of text files need it:
/// `write_prometheus(path, reduce.trace().report())`, one file a rank. Not collective.
///
/// Errors: none. If the file cannot be written: false, and a line on stderr.
HERRING_SETUP inline bool write_prometheus(std::string const& path, timeline_report const& of) {
    return detail::try_write_whole_file(path, detail::timeline_metrics(of).text(), "write_prometheus");
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_PROMETHEUS_HPP
