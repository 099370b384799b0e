// herring: tests of trace/timeline_flights.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_flights.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

using herring::detail::timeline_flights;
using timelines::schedule, timelines::trace_event;

TEST_CASE("flights: lanes hold flights that do not overlap, and no more of them than are in flight at once") {
    schedule s;
    s.submitted(0, 0, 0).submitted(5, 1, 1).submitted(12, 2, 0).submitted(20, 3, 1);
    s.reduced(10, 0, 0).reduced(15, 1, 1).reduced(30, 2, 0).reduced(40, 3, 1);
    timeline_flights const found(s.done());
    REQUIRE(found.flights.size() == 4);
    CHECK(timeline_flights::lanes_of(found.flights) == std::vector<std::size_t>{0, 1, 0, 1});
    REQUIRE(found.busy.size() == 1);
    CHECK(found.busy[0].begin == 0);
    CHECK(found.busy[0].end == 40);
}

TEST_CASE("flights: where a rank is stuck: the wait that has no end, whom it was for, and what is open") {
    schedule s;
    s.submitted(0, 0, 0).reduced(10, 0, 0).wait(5, 20).submitted(30, 1, 1).at(40, trace_event::wait_begin);
    s.at(50, trace_event::waits_for, {.index = 1, .peer = 3, .execution = 1});
    timeline_flights const found(s.done());
    CHECK(found.is_waiting);
    CHECK(found.open_wait == 40);
    CHECK(found.open_peer == 3);
    REQUIRE(found.open.size() == 1);
    CHECK(found.open[0].bucket == 1);
    CHECK(found.flights.size() == 1);
}

TEST_CASE("flights: a fold without its beginning is none") {
    schedule s;
    s.at(5, trace_event::fold_end)
        .at(10, trace_event::fold_begin, {.index = 1})
        .at(30, trace_event::fold_end);
    timeline_flights const found(s.done());
    CHECK(found.folds == std::vector<double>{20});
}

TEST_CASE("flights: a device's copies go one by one; behind a wait nobody finds their ends") {
    using enum trace_event;
    schedule s;
    s.at(0, to_host_begin, {.index = 1, .execution = 0, .bytes = 8})
        .at(5, to_host_begin, {.index = 0, .execution = 1});
    s.at(20, to_host_end, {.index = 1, .execution = 0}).at(50, to_host_end, {.index = 0, .execution = 1});
    s.at(60, to_device_begin, {.index = 1, .execution = 0})
        .at(70, to_device_begin, {.index = 0, .execution = 1});
    s.wait(55, 90).at(80, to_device_end, {.execution = 0}).at(500, to_device_end, {.execution = 1});
    s.at(510, to_host_end, {.execution = 7}); // its begin was replaced
    timeline_flights const found(s.done());
    REQUIRE(found.to_host.size() == 2);
    CHECK(found.to_host[0].bucket == 1);
    CHECK(found.to_host[0].bytes == 8);
    CHECK(found.to_host[0].of.end == 20);
    CHECK(found.to_host[1].of.begin == 20);
    CHECK(found.to_host[1].of.end == 50);
    REQUIRE(found.to_device.size() == 2);
    CHECK(found.to_device[0].of.length() == 20);
    CHECK(found.to_device[1].of.begin == 70);
    CHECK(found.to_device[1].of.length() == 0);
}
