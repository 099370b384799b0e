// herring: tests of trace/timeline_report.hpp: each formula against schedules whose answers are known.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_report.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <string>

using herring::timeline_report;
using herring::timeline_times;
using timelines::schedule, timelines::trace_event;

TEST_CASE("report: exposed communication, overlap, the share of each bucket, and the bus") {
    // Two steps of 1000 ns. Bucket 0 is in flight 100-400, all hidden; bucket 1 300-800, of which the wait 600-900 shows 200.
    schedule s;
    for (std::uint32_t step = 0; step < 2; ++step) {
        std::int64_t const t = 1000 * step;
        s.submitted(t + 100, 2 * step, 0).reduced(t + 400, 2 * step, 0);
        s.submitted(t + 300, 2 * step + 1, 1).reduced(t + 800, 2 * step + 1, 1);
        s.wait(t + 600, t + 900);
    }
    timeline_report const r(s.done());
    CHECK(r.step.count == 1); // the first has no beginning
    CHECK(r.step.mean == 1000);
    CHECK(r.exposed.count == 2);
    CHECK(r.exposed.mean == 300);  // 200 until the result, and 100 behind it
    CHECK(r.in_flight_ns == 1400); // 100-800, twice
    CHECK(r.hidden == doctest::Approx(1 - 400.0 / 1400));
    REQUIRE(r.buckets.size() == 2);
    CHECK(r.buckets[0].exposed_ns == 0);
    CHECK(r.buckets[1].exposed_ns == 400);
    CHECK(r.buckets[1].in_flight.mean == 500);
    // busbw: 3000 bytes in 500 ns, times 2(n−1)/n of four ranks
    CHECK(r.buckets[1].bytes_per_second == doctest::Approx(3000 / 500e-9 * 1.5));
    CHECK(r.bus_bytes_per_second == doctest::Approx(2 * 4000 * 1.5 / 1400e-9));
    // Nothing is in flight from 800 to 1100: it begins in the first step, which has no beginning, so only `gaps` has it.
    CHECK(r.gaps.count == 1);
    CHECK(r.gaps.mean == 300);
}

TEST_CASE("report: two results in one wait divide it") {
    schedule s;
    s.submitted(0, 0, 0).submitted(10, 1, 1).wait(100, 500).reduced(200, 0, 0).reduced(450, 1, 1);
    timeline_report const r(s.done());
    CHECK(r.buckets[0].exposed_ns == 100);
    CHECK(r.buckets[1].exposed_ns == 250); // and 50 of the wait belong to no bucket
    CHECK(r.exposed.mean == 400);
}

TEST_CASE("report: the longest gap of each step: how long, when, how regular") {
    // Steps end at 1000, 2000, ...; in each nothing is in flight at 100-200 and at 300-300+g.
    schedule s;
    std::uint32_t execution = 0;
    for (int step = 0; step < 5; ++step) {
        std::int64_t const t = 1000 * step, g = 200 + 100 * (step % 2);
        auto const busy = [&](std::int64_t from, std::int64_t to) {
            s.submitted(t + from, execution, 0).reduced(t + to, execution, 0);
            ++execution;
        };
        busy(0, 100);
        busy(200, 300);
        busy(300 + g, 1000);
        s.wait(t + 900, t + 1000);
    }
    timeline_report const r(s.done());
    CHECK(r.gaps.count == 10);
    REQUIRE(r.longest_gap.count == 4); // the first step has no beginning
    CHECK(r.longest_gap.mean == 250);
    CHECK(r.longest_gap.least == 200);
    CHECK(r.longest_gap.variation == doctest::Approx(50.0 / 250));
    CHECK(r.longest_gap_begin.mean == 300);
    CHECK(r.longest_gap_begin.variation == 0);
}

TEST_CASE("report: skew of arrivals by rank, and what overlap absorbs") {
    // This rank at 0, rank 1 at 100, rank 2 at 200, rank 3 at 700: median 100, skew 600. The wait shows 300 of it.
    schedule s;
    s.submitted(0, 0, 0).arrived(50, 0, 1).arrived(100, 0, 1).arrived(200, 0, 2).arrived(700, 0, 3);
    s.wait(500, 800, 3).reduced(800, 0, 0);
    // Again, with rank 3 at 300 and no wait before the result: all of it is absorbed.
    s.submitted(1000, 1, 0).arrived(1100, 1, 1).arrived(1200, 1, 2).arrived(1300, 1, 3).reduced(1400, 1, 0);
    s.wait(1500, 1510);
    timeline_report const r(s.done());
    CHECK(r.skew.count == 2);
    CHECK(r.skew.total == 600 + 200);
    CHECK(r.absorbed == doctest::Approx(1 - 300.0 / 800));
    REQUIRE(r.by_rank.size() == 4);
    CHECK(r.by_rank[0].lateness.mean == -100);
    CHECK(r.by_rank[1].lateness.mean == 0);
    CHECK(r.by_rank[3].lateness.mean == 400);
    CHECK(r.by_rank[3].lateness.most == 600);
}

TEST_CASE("report: who is waited for, and stalls until the part has left") {
    schedule s;
    s.submitted(0, 0, 0);
    s.at(10, trace_event::credit_stall, {.peer = 2, .message = 7});
    s.at(20, trace_event::part_sent, {.peer = 2, .message = 6}); // another one
    s.at(60, trace_event::part_sent, {.peer = 2, .message = 7});
    s.at(90, trace_event::waits_for, {.peer = 1}); // before the wait: only what the wait has of it
    s.at(150, trace_event::waits_for, {.peer = 3});
    s.wait(100, 300, 3).reduced(250, 0, 0);
    timeline_report const r(s.done());
    REQUIRE(r.by_rank.size() == 3);
    CHECK(r.by_rank[0].waited_ns == 50); // rank 1
    CHECK(r.by_rank[1].stalls == 1);     // rank 2
    CHECK(r.by_rank[1].stalled_ns == 50);
    CHECK(r.by_rank[2].waited_ns == 100); // rank 3, until the result
}

TEST_CASE("report: what has one end in the ring counts not, and calls on buffers are apart") {
    schedule s;
    s.reduced(5, 0, 0).at(7, trace_event::wait_end);
    s.submitted(10, 1, herring::no_bucket).reduced(20, 1, herring::no_bucket).submitted(30, 2, 0);
    timeline_report const r(s.done());
    CHECK(r.buckets.empty());
    CHECK(r.exposed.count == 0);
    CHECK(r.in_flight_ns == 0);
    CHECK(r.outside == 1);
    CHECK(timeline_report(herring::timeline_data{}).text().find("0 records") != std::string::npos);
}

TEST_CASE("report: text says what to distrust, and JSON is one object") {
    schedule s;
    s.submitted(0, 0, 0).reduced(10, 0, 0).wait(5, 20);
    s.data.lost = 3;
    s.data.backwards = 2;
    s.data.clock_jumped = true;
    timeline_report const r(s.done());
    std::string const text = r.text();
    CHECK(text.find("3 older records were replaced") != std::string::npos);
    CHECK(text.find("THE CLOCK JUMPED") != std::string::npos);
    CHECK(text.find("the ticks went back 2 times") != std::string::npos);
    CHECK(text.find("monotonic clock") != std::string::npos);
    CHECK(text.find("not compared with rank 0's") != std::string::npos);
    std::string const json = r.json();
    int depth = 0;
    for (char const c : json) depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    CHECK(depth == 0);
    CHECK(json.starts_with("{\"rank\":0,"));
    CHECK(json.ends_with("}]}"));
    CHECK(json.find(",}") == std::string::npos);
    CHECK(json.find(",]") == std::string::npos);
    CHECK(json.find("\"lost\":3,") != std::string::npos);
}

TEST_CASE("report: times") {
    timeline_times const t = timeline_times::of({4, 1, 3, 2});
    CHECK(t.count == 4);
    CHECK(t.mean == 2.5);
    CHECK(t.median == 2);
    CHECK(t.least == 1);
    CHECK(t.most == 4);
    CHECK(t.variation == doctest::Approx(std::sqrt(1.25) / 2.5));
    CHECK(timeline_times::of({}).count == 0);
}
