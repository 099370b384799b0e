// herring: tests of net/life_signs.hpp: a thread that slept too long knows it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/life_signs.hpp"

#include "doctest/doctest.h"

using namespace herring::detail;
using std::chrono::milliseconds;

TEST_CASE("stall_detector: who misses its own time by more than the slack is told by how much") {
    herring::time_point const start{milliseconds(1'000'000)};
    stall_detector own;
    CHECK(own.late(start) == milliseconds(0)); // it has not said when
    own.expect(start, milliseconds(500));
    CHECK(own.late(start + milliseconds(100)) == milliseconds(0)); // something woke it
    CHECK(own.late(start + milliseconds(500)) == milliseconds(0));
    CHECK(own.late(start + milliseconds(500) + stall_detector::slack) == milliseconds(0));
    CHECK(own.late(start + milliseconds(6'000)) == milliseconds(5'500));
    own.expect(start + milliseconds(6'000), milliseconds(0));
    CHECK(own.late(start + milliseconds(6'100)) == milliseconds(0));
}

TEST_CASE("stall_detector: time that was slept through does not count as patience") {
    CHECK(counted_time(milliseconds(20)) == milliseconds(20));
    CHECK(counted_time(milliseconds(6'000)) == milliseconds(100));
}
