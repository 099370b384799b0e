// herring: counters and latencies of an ensemble's frontend and its members, and their text for Prometheus.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_COUNTERS_HPP
#define HERRING_ENSEMBLE_COUNTERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/outcome.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE {

/// The requests of one member by their fate, since the frontend's start. Counters only grow.
///
/// Requests in flight apart, asked = answered + missed.
struct member_counters {
    std::uint64_t asked = 0;    ///< requests sent to the member, whichever replica
    std::uint64_t answered = 0; ///< requests that the member contributed to
    std::uint64_t missed = 0;   ///< requests that it was asked and that were decided without it
    std::uint64_t late = 0;     ///< good rows that came after the decision, or after another replica's
    std::uint64_t hedged = 0;   ///< second requests to another replica
    std::uint64_t stale =
        0; ///< messages of an earlier incarnation, or for a request that it does not owe; dropped
    std::uint64_t duplicate = 0;      ///< further answers to a request in flight; dropped
    std::uint64_t lost = 0;           ///< connections that ended
    std::uint64_t early = 0;          ///< rows that came before they were expected, and were kept
    std::uint64_t early_answered = 0; ///< early rows that counted
    std::uint64_t early_evicted = 0;  ///< early rows dropped for a newer one, as no place was free
    std::uint64_t early_expired = 0;  ///< early rows dropped as they were not expected in time

    std::uint64_t missing[misses] = {};    ///< requests by `miss`; `none`: answered
    std::uint64_t declined[declines] = {}; ///< answers by `decline`, late ones included
    std::uint64_t refused_rows[6] = {};    ///< rows that came, by fault (`row_check`), late ones included
    static_assert(detail::ensembles::row_checks == 6);

    constexpr std::uint64_t missing_for(miss why) const noexcept {
        return missing[static_cast<std::size_t>(why)];
    }
    constexpr std::uint64_t declined_for(decline why) const noexcept {
        return declined[static_cast<std::size_t>(why)];
    }
    /// Returns the rows that did not pass the check, at the frontend or at the member.
    constexpr std::uint64_t refused() const noexcept {
        std::uint64_t all = declined_for(decline::bad_row);
        for (std::uint64_t const n : refused_rows) all += n;
        return all;
    }

    friend constexpr bool operator==(member_counters const&, member_counters const&) = default;
};

/// The requests of a frontend by their outcome, and refused processes, since its start. Counters only grow.
struct frontend_counters {
    std::uint64_t ended[outcomes] =
        {};                   ///< requests by outcome; `busy` and `closed` also without having begun
    std::uint64_t hedges = 0; ///< second requests to another replica
    std::uint64_t hedges_withheld =
        0; ///< hedges that were due, with another replica at hand, but beyond the budget
    std::uint64_t late_rows = 0;                    ///< sum of the members' `late`
    std::uint64_t refused[admission_refusals] = {}; ///< refused processes by reason

    constexpr std::uint64_t refused_for(admission_refusal why) const noexcept {
        return refused[static_cast<std::size_t>(why)];
    }
    constexpr std::uint64_t ended_as(outcome how) const noexcept {
        return ended[static_cast<std::size_t>(how)];
    }

    friend constexpr bool operator==(frontend_counters const&, frontend_counters const&) = default;
};

/// Percentiles of a window of times, in nanoseconds. −1: no time was measured.
struct time_percentiles {
    std::int64_t p50_ns = -1, p95_ns = -1, p99_ns = -1;

    friend constexpr bool operator==(time_percentiles const&, time_percentiles const&) = default;
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// A histogram of the last 1,024 times.
///
/// Units:   nanoseconds. A bucket is 1/32 of its times wide, so a percentile is at most 3.2 % too high, never
///          too low. Times of 2^42 ns (73 minutes) and more count as 2^42 ns.
/// Cost:    4.5 KB; `add` some 2 ns; a percentile adds up to 1,216 counters, at most some 0.5 µs.
class time_window {
  public:
    static constexpr std::size_t capacity = 1024;

    void add(std::int64_t ns) noexcept {
        std::uint16_t const bucket = bucket_of(ns);
        std::uint16_t& place = window_[added_ % capacity];
        if (added_ >= capacity) --counts_[place];
        place = bucket;
        ++counts_[bucket];
        ++added_;
        sum_ns_ += ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
    }

    std::size_t size() const noexcept {
        return added_ < capacity ? static_cast<std::size_t>(added_) : capacity;
    }
    std::uint64_t added() const noexcept { return added_; }   ///< ever
    std::uint64_t sum_ns() const noexcept { return sum_ns_; } ///< of all times ever added

    /// Returns the ⌈percent · size / 100⌉-th smallest time, rounded up to the end of its bucket; −1: empty.
    std::int64_t percentile(unsigned percent) const noexcept {
        std::size_t const in = size();
        if (in == 0) return -1;
        std::size_t const rank = (in * percent + 99) / 100;
        std::size_t below = 0;
        for (std::size_t b = 0; b < buckets; ++b) {
            below += counts_[b];
            if (below >= rank && below > 0) return end_of(b);
        }
        return end_of(buckets - 1);
    }
    time_percentiles percentiles() const noexcept { return {percentile(50), percentile(95), percentile(99)}; }

    /// Returns the end of the time's bucket, as a percentile shows it.
    static constexpr std::int64_t rounded(std::int64_t ns) noexcept { return end_of(bucket_of(ns)); }

  private:
    static constexpr int octave_bits = 5, most_bits = 42;
    static constexpr std::size_t octave = std::size_t{1} << octave_bits;
    static constexpr std::size_t buckets = (most_bits - octave_bits + 1) * octave;

    // 0 … 63 exactly, then 32 buckets for each power of two.
    static constexpr std::uint16_t bucket_of(std::int64_t ns) noexcept {
        constexpr std::uint64_t most = (std::uint64_t{1} << most_bits) - 1;
        std::uint64_t time = ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
        if (time > most) time = most;
        int const width = static_cast<int>(std::bit_width(time));
        int const shift = width > octave_bits + 1 ? width - octave_bits - 1 : 0;
        return static_cast<std::uint16_t>(static_cast<std::uint64_t>(shift) * octave + (time >> shift));
    }
    static constexpr std::int64_t end_of(std::size_t bucket) noexcept {
        if (bucket < 2 * octave) return static_cast<std::int64_t>(bucket);
        std::size_t const shift = bucket / octave - 1;
        return static_cast<std::int64_t>(((bucket - shift * octave + 1) << shift) - 1);
    }

    std::uint64_t added_ = 0, sum_ns_ = 0;
    std::uint16_t window_[capacity] = {}; // ring of the last times' buckets
    std::uint16_t counts_[buckets] = {};
};

/// The metrics of one member.
struct member_metrics {
    std::string_view name{};
    member_counters counts{};
    bool admitted = false, on_probation = false;
    time_percentiles latency{}, lateness{};
    std::uint64_t latencies = 0, latencies_sum_ns = 0, latenesses = 0, latenesses_sum_ns = 0;
};

/// The metrics of a frontend and its roster.
struct frontend_metrics {
    std::string_view ensemble{}; ///< the label `ensemble` on every line
    frontend_counters counts{};
    std::size_t in_flight = 0, slots = 0, k = 0;
    std::span<member_metrics const> members{};
};

/// Writes the text exposition format of Prometheus, version 0.0.4.
///
/// Units:   seconds, as Prometheus has it. Percentiles are of the last 1,024 times; a member without any has
///          none.
/// Cost:    some 40 lines a member. Allocates: not for the path of requests.
/// Errors:  none; any name is a label: backslash, quote and newline are escaped.
class prometheus_text {
  public:
    HERRING_SETUP explicit prometheus_text(frontend_metrics const& of) : of_(of) {
        for (int i = 0; i < outcomes; ++i)
            frontend("requests_total", "counter", "Requests by how they ended.", of.counts.ended[i],
                     "outcome", to_string(static_cast<outcome>(i)));
        for (int i = 1; i < admission_refusals; ++i)
            frontend("refused_total", "counter", "Processes that were not taken as a member, by reason.",
                     of.counts.refused[i], "reason", to_string(static_cast<admission_refusal>(i)));
        frontend("requests_in_flight", "gauge", "Requests that are not released.", of.in_flight);
        frontend("requests_in_flight_limit", "gauge", "Requests that may be in flight.", of.slots);
        frontend("quorum", "gauge", "Members that make an answer.", of.k);
        frontend("hedges_total", "counter", "Second requests to another replica.", of.counts.hedges);
        frontend("hedges_withheld_total", "counter", "Second requests that the budget did not allow.",
                 of.counts.hedges_withheld);
        members("member_up", "gauge", "1: the member is admitted.",
                [](member_metrics const& m) -> std::uint64_t { return m.admitted; });
        members("member_on_probation", "gauge", "1: the member is asked and not waited for.",
                [](member_metrics const& m) -> std::uint64_t { return m.on_probation; });
        members("member_asked_total", "counter", "Requests that the member was asked.",
                [](member_metrics const& m) { return m.counts.asked; });
        members("member_answered_total", "counter", "Requests whose answer has the member's row.",
                [](member_metrics const& m) { return m.counts.answered; });
        by_reason(
            "member_missing_total", "Requests decided without the member, by reason.", 1, misses,
            [](member_metrics const& m, int i) { return m.counts.missing[i]; },
            [](int i) { return to_string(static_cast<miss>(i)); });
        by_reason(
            "member_declined_total", "Requests that the member declined, by reason.", 0, declines,
            [](member_metrics const& m, int i) { return m.counts.declined[i]; },
            [](int i) { return to_string(static_cast<decline>(i)); });
        by_reason(
            "member_refused_rows_total", "Rows that did not pass their check, by reason.", 1, row_checks,
            [](member_metrics const& m, int i) { return m.counts.refused_rows[i]; },
            [](int i) { return to_string(static_cast<row_check>(i)); });
        members("member_late_rows_total", "counter", "Rows that came after the decision.",
                [](member_metrics const& m) { return m.counts.late; });
        members("member_stale_messages_total", "counter", "Messages that the member did not owe.",
                [](member_metrics const& m) { return m.counts.stale; });
        members("member_duplicates_total", "counter", "Second answers to one request.",
                [](member_metrics const& m) { return m.counts.duplicate; });
        members("member_hedged_total", "counter", "Second requests to another replica of the member.",
                [](member_metrics const& m) { return m.counts.hedged; });
        members("member_connections_lost_total", "counter", "Connections of the member that ended.",
                [](member_metrics const& m) { return m.counts.lost; });
        members("member_early_rows_total", "counter", "Rows that came before they were expected.",
                [](member_metrics const& m) { return m.counts.early; });
        by_reason(
            "member_early_rows_ended_total", "Early rows by what became of them.", 0, 3,
            [](member_metrics const& m, int i) {
                return i == 0   ? m.counts.early_answered
                       : i == 1 ? m.counts.early_evicted
                                : m.counts.early_expired;
            },
            [](int i) { return i == 0   ? "answered"
                               : i == 1 ? "evicted"
                                        : "expired"; });
        times("member_latency_seconds", "From sending a request to its row.", [](member_metrics const& m) {
            return summary{m.latency, m.latencies, m.latencies_sum_ns};
        });
        times("member_lateness_seconds", "From a decision without the member to its row.",
              [](member_metrics const& m) {
                  return summary{m.lateness, m.latenesses, m.latenesses_sum_ns};
              });
    }

    std::string const& text() const noexcept { return text_; }

    /// Returns a label's value with `\`, `"` and newline escaped as the format demands.
    HERRING_SETUP static std::string escaped(std::string_view value) {
        std::string out;
        out.reserve(value.size());
        for (char const c : value)
            if (c == '\n')
                out += "\\n";
            else if (c == '\\' || c == '"')
                (out += '\\') += c;
            else
                out += c;
        return out;
    }

  private:
    struct summary {
        time_percentiles times;
        std::uint64_t count, sum_ns;
    };

    HERRING_SETUP void head(char const* name, char const* type, char const* help) {
        if (last_ == name) return; // another label of the same metric
        last_ = name;
        append(text_, {"# HELP herring_ensemble_", name, " ", help, "\n# TYPE herring_ensemble_", name, " ",
                       type, "\n"});
    }
    HERRING_SETUP void line(char const* name, char const* suffix, std::string_view member, char const* label,
                            char const* value, std::string_view number) {
        append(text_, {"herring_ensemble_", name, suffix, "{ensemble=\"", escaped(of_.ensemble)});
        if (!member.empty()) append(text_, {"\",member=\"", escaped(member)});
        if (label != nullptr) append(text_, {"\",", label, "=\"", value});
        append(text_, {"\"} ", number, "\n"});
    }
    static std::string seconds(std::uint64_t ns) {
        char digits[40];
        std::snprintf(digits, sizeof digits, "%llu.%09llu",
                      static_cast<unsigned long long>(ns / 1'000'000'000),
                      static_cast<unsigned long long>(ns % 1'000'000'000));
        return digits;
    }

    HERRING_SETUP void frontend(char const* name, char const* type, char const* help, std::uint64_t value,
                                char const* label = nullptr, char const* label_value = nullptr) {
        head(name, type, help);
        line(name, "", {}, label, label_value, std::to_string(value));
    }
    template <class Value>
    HERRING_SETUP void members(char const* name, char const* type, char const* help, Value value) {
        head(name, type, help);
        for (member_metrics const& m : of_.members)
            line(name, "", m.name, nullptr, nullptr, std::to_string(value(m)));
    }
    template <class Value, class Reason>
    HERRING_SETUP void by_reason(char const* name, char const* help, int first, int end, Value value,
                                 Reason reason) {
        head(name, "counter", help);
        for (member_metrics const& m : of_.members)
            for (int i = first; i < end; ++i)
                line(name, "", m.name, "reason", reason(i), std::to_string(value(m, i)));
    }
    template <class Summary> HERRING_SETUP void times(char const* name, char const* help, Summary of) {
        head(name, "summary", help);
        for (member_metrics const& m : of_.members) {
            summary const s = of(m);
            if (s.times.p50_ns >= 0) {
                line(name, "", m.name, "quantile", "0.5",
                     seconds(static_cast<std::uint64_t>(s.times.p50_ns)));
                line(name, "", m.name, "quantile", "0.95",
                     seconds(static_cast<std::uint64_t>(s.times.p95_ns)));
                line(name, "", m.name, "quantile", "0.99",
                     seconds(static_cast<std::uint64_t>(s.times.p99_ns)));
            }
            line(name, "_sum", m.name, nullptr, nullptr, seconds(s.sum_ns));
            line(name, "_count", m.name, nullptr, nullptr, std::to_string(s.count));
        }
    }

    frontend_metrics const& of_;
    char const* last_ = nullptr;
    std::string text_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_COUNTERS_HPP
