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
