// herring: tests of detail/liveness.hpp: a thread that slept too long knows it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/detail/liveness.hpp"

#include "doctest/doctest.h"

using namespace herring::detail;
using std::chrono::milliseconds;

TEST_CASE("liveness: the times are in order") {
    constexpr liveness times;
    static_assert(times.beat * 3 < times.suspected && times.suspected < times.dead);
    static_assert(times.answer > times.beat && times.answer < times.verdict && times.verdict < times.dead);
    static_assert(punctuality::slack < times.beat);
}

TEST_CASE("liveness: who misses its own time by more than the slack is told by how much") {
    herring::time_point const start{milliseconds(1'000'000)};
    punctuality own;
    CHECK(own.late(start) == milliseconds(0)); // it has not said when
    own.expect(start, milliseconds(500));
    CHECK(own.late(start + milliseconds(100)) == milliseconds(0)); // something woke it
    CHECK(own.late(start + milliseconds(500)) == milliseconds(0));
    CHECK(own.late(start + milliseconds(500) + punctuality::slack) == milliseconds(0));
    CHECK(own.late(start + milliseconds(6'000)) == milliseconds(5'500));
    own.expect(start + milliseconds(6'000), milliseconds(0));
    CHECK(own.late(start + milliseconds(6'100)) == milliseconds(0));
}

TEST_CASE("liveness: time that was slept through does not count as patience") {
    CHECK(awake(milliseconds(20)) == milliseconds(20));
    CHECK(awake(milliseconds(6'000)) == milliseconds(100));
}
