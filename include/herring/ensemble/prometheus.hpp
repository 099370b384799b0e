// herring: an ensemble's counters in Prometheus' text format.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_PROMETHEUS_HPP
#define HERRING_ENSEMBLE_PROMETHEUS_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail::ensembles {

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

#endif // HERRING_ENSEMBLE_PROMETHEUS_HPP
