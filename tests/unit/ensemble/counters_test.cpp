// herring: tests of ensemble/counters.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/counters.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ensemble_counters_test {

TEST_CASE("counters: by reason") {
    herring::member_counters c;
    c.missing[static_cast<std::size_t>(herring::miss::late)] = 3;
    c.declined[static_cast<std::size_t>(herring::decline::overloaded)] = 2;
    c.refused_rows[1] = 4;
    c.refused_rows[5] = 1;
    CHECK(c.missing_for(herring::miss::late) == 3);
    CHECK(c.missing_for(herring::miss::expired) == 0);
    CHECK(c.declined_for(herring::decline::overloaded) == 2);
    CHECK(c.refused() == 5);
    CHECK(c != herring::member_counters{});
    herring::frontend_counters f;
    f.ended[static_cast<std::size_t>(herring::outcome::busy)] = 7;
    CHECK(f.ended_as(herring::outcome::busy) == 7);
    CHECK(f.ended_as(herring::outcome::full) == 0);
    CHECK(f != herring::frontend_counters{});
}

} // namespace ensemble_counters_test

namespace ensemble_lateness_test {

using herring::detail::ensembles::time_window;

TEST_CASE("lateness: of nothing there is none") {
    time_window const none;
    CHECK(none.size() == 0);
    CHECK(none.percentile(50) == -1);
    CHECK(none.percentiles() == herring::time_percentiles{});
}

TEST_CASE("lateness: a time is shown at most 1/32 too high, never too low") {
    std::int64_t before = -1;
    for (std::int64_t ns = 0; ns < std::int64_t{1} << 42; ns += 1 + ns / 50) {
        std::int64_t const shown = time_window::rounded(ns);
        CHECK(shown >= ns);
        CHECK(shown - ns <= ns / 32);
        CHECK(shown >= before);
        CHECK(time_window::rounded(shown) == shown);
        before = shown;
    }
    for (std::int64_t ns = 0; ns < 64; ++ns) CHECK(time_window::rounded(ns) == ns);
    CHECK(time_window::rounded(-5) == 0);
    CHECK(time_window::rounded(std::numeric_limits<std::int64_t>::max()) == (std::int64_t{1} << 42) - 1);
}

TEST_CASE("lateness: percentiles are those of the last 1,024 times") {
    std::mt19937_64 random(7);
    time_window window;
    std::deque<std::int64_t> last;
    std::uint64_t sum = 0;
    for (int i = 0; i < 5000; ++i) {
        // Times drift, so that old ones show where they are not taken out.
        std::int64_t const ns = static_cast<std::int64_t>(random() % 1'000'000) + (i < 2500 ? 5'000'000 : 0);
        window.add(ns);
        sum += static_cast<std::uint64_t>(ns);
        last.push_back(ns);
        if (last.size() > 1024) last.pop_front();
        if (i % 97 != 0 && i > 5) continue;
        std::vector<std::int64_t> sorted(last.begin(), last.end());
        std::sort(sorted.begin(), sorted.end());
        REQUIRE(window.size() == sorted.size());
        for (unsigned const percent : {0u, 1u, 50u, 95u, 99u, 100u}) {
            std::size_t const rank = (sorted.size() * percent + 99) / 100;
            CHECK(window.percentile(percent) == time_window::rounded(sorted[rank > 0 ? rank - 1 : 0]));
        }
        CHECK(window.percentiles().p50_ns == window.percentile(50));
        CHECK(window.percentiles().p95_ns == window.percentile(95));
        CHECK(window.percentiles().p99_ns == window.percentile(99));
    }
    CHECK(window.added() == 5000);
    CHECK(window.sum_ns() == sum);
}

} // namespace ensemble_lateness_test

namespace ensemble_prometheus_test {

using namespace herring::detail::ensembles;

frontend_metrics sample(std::vector<member_metrics>& members) {
    members.resize(2);
    members[0].name = "a";
    members[0].admitted = true;
    members[0].counts.asked = 10;
    members[0].counts.answered = 8;
    members[0].counts.missing[static_cast<std::size_t>(herring::miss::late)] = 2;
    members[0].counts.declined[static_cast<std::size_t>(herring::decline::overloaded)] = 1;
    members[0].counts.refused_rows[static_cast<std::size_t>(row_check::no_mass)] = 3;
    members[0].counts.early = 7;
    members[0].counts.early_answered = 4;
    members[0].counts.early_evicted = 2;
    members[0].counts.early_expired = 1;
    members[0].latency = {1'000'000, 2'000'000, 1'500'000'000};
    members[0].latencies = 9;
    members[0].latencies_sum_ns = 12'000'000'001;
    members[1].name = "b \"quoted\" \\ and\nbroken";
    members[1].on_probation = true;
    frontend_metrics of{.ensemble = "digits", .in_flight = 3, .slots = 64, .k = 2, .members = members};
    of.counts.ended[static_cast<std::size_t>(herring::outcome::full)] = 7;
    of.counts.hedges = 4;
    of.counts.refused[static_cast<std::size_t>(herring::admission_refusal::model_version)] = 6;
    return of;
}
bool has(std::string const& text, std::string const& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_CASE("prometheus: counters, by label") {
    std::vector<member_metrics> members;
    frontend_metrics const of = sample(members);
    std::string const text = prometheus_text(of).text();
    INFO(text);
    CHECK(has(text, "# TYPE herring_ensemble_requests_total counter"));
    CHECK(has(text, "herring_ensemble_requests_total{ensemble=\"digits\",outcome=\"full\"} 7"));
    CHECK(has(text, "herring_ensemble_requests_total{ensemble=\"digits\",outcome=\"closed\"} 0"));
    CHECK(has(text, "herring_ensemble_requests_in_flight{ensemble=\"digits\"} 3"));
    CHECK(has(text, "herring_ensemble_refused_total{ensemble=\"digits\",reason=\"model version\"} 6"));
    CHECK(has(text, "herring_ensemble_hedges_total{ensemble=\"digits\"} 4"));
    CHECK(has(text, "herring_ensemble_member_up{ensemble=\"digits\",member=\"a\"} 1"));
    CHECK(has(text, "herring_ensemble_member_asked_total{ensemble=\"digits\",member=\"a\"} 10"));
    CHECK(has(text,
              "herring_ensemble_member_missing_total{ensemble=\"digits\",member=\"a\",reason=\"late\"} 2"));
    CHECK(has(
        text,
        "herring_ensemble_member_declined_total{ensemble=\"digits\",member=\"a\",reason=\"overloaded\"} 1"));
    CHECK(has(
        text,
        "herring_ensemble_member_refused_rows_total{ensemble=\"digits\",member=\"a\",reason=\"no mass\"} 3"));
    CHECK(has(text, "herring_ensemble_member_early_rows_total{ensemble=\"digits\",member=\"a\"} 7"));
    for (char const* const end : {"reason=\"answered\"} 4", "reason=\"evicted\"} 2", "reason=\"expired\"} 1"})
        CHECK(has(text, std::string("herring_ensemble_member_early_rows_ended_total{ensemble=\"digits\","
                                    "member=\"a\",") +
                            end));
    CHECK(has(text, "# TYPE herring_ensemble_member_latency_seconds summary"));
    CHECK(has(text, "herring_ensemble_member_latency_seconds{ensemble=\"digits\",member=\"a\",quantile=\"0."
                    "5\"} 0.001000000"));
    CHECK(has(text, "herring_ensemble_member_latency_seconds{ensemble=\"digits\",member=\"a\",quantile=\"0."
                    "99\"} 1.500000000"));
    CHECK(has(text,
              "herring_ensemble_member_latency_seconds_sum{ensemble=\"digits\",member=\"a\"} 12.000000001"));
    CHECK(has(text, "herring_ensemble_member_latency_seconds_count{ensemble=\"digits\",member=\"a\"} 9"));
    CHECK(text.find("lateness_seconds{ensemble=\"digits\",member=\"a\",quantile") == std::string::npos);
}

TEST_CASE("prometheus: values of labels are escaped") {
    std::vector<member_metrics> members;
    frontend_metrics const of = sample(members);
    CHECK(has(prometheus_text(of).text(), "herring_ensemble_member_on_probation{ensemble=\"digits\",member="
                                          "\"b \\\"quoted\\\" \\\\ and\\nbroken\"} 1"));
    CHECK(prometheus_text::escaped("plain") == "plain");
    CHECK(prometheus_text::escaped("") == "");
}

TEST_CASE("prometheus: every line is a comment or a sample, no series comes twice, none before its type") {
    std::vector<member_metrics> members;
    frontend_metrics const of = sample(members);
    std::istringstream lines(prometheus_text(of).text());
    std::set<std::string> series, types;
    std::string family;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("# TYPE ", 0) == 0) {
            family = line.substr(7, line.find(' ', 7) - 7);
            CHECK(types.insert(family).second);
        } else if (line.rfind("# HELP ", 0) != 0) {
            std::size_t const end = line.rfind("} ");
            REQUIRE(end != std::string::npos);
            CHECK(line.rfind(family, 0) == 0);
            CHECK(series.insert(line.substr(0, end)).second);
            CHECK(line.find_first_not_of("0123456789.", end + 2) == std::string::npos);
        }
    }
    CHECK(types.size() == 23);
}

} // namespace ensemble_prometheus_test
