// herring: tests of control/failure/liveness.hpp: a thread that slept too long knows it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/failure/liveness.hpp"

#include "doctest/doctest.h"

using namespace herring::detail;
using std::chrono::milliseconds;

TEST_CASE("liveness: the times are in order") {
    constexpr liveness times;
    static_assert(times.beat * 3 < times.suspected && times.suspected < times.dead);
    static_assert(times.answer > times.beat && times.answer < times.verdict && times.verdict < times.dead);
    static_assert(stall_detector::slack < times.beat);
}

TEST_CASE("liveness: the other times follow the one that is set") {
    constexpr liveness usual = liveness::of(milliseconds(5'000));
    static_assert(usual.beat == liveness{}.beat && usual.suspected == liveness{}.suspected &&
                  usual.answer == liveness{}.answer && usual.verdict == liveness{}.verdict);
    constexpr liveness quick = liveness::of(milliseconds(500));
    CHECK(quick.beat == milliseconds(50));
    CHECK(quick.suspected == milliseconds(200));
    CHECK(quick.dead == milliseconds(500));
    CHECK(quick.answer == milliseconds(250));
    CHECK(quick.verdict == milliseconds(750));
    // Longer patience is no reason to speak less often.
    for (liveness const& patient : {liveness::of(std::chrono::hours(1)), liveness::of(herring::never)}) {
        CHECK(patient.beat == usual.beat);
        CHECK(patient.suspected == usual.suspected);
        CHECK(patient.answer == usual.answer);
    }
    CHECK(herring::clock::duration(liveness::of(herring::never).dead) >
          std::chrono::hours(1)); // it does not overflow
}

TEST_CASE("liveness: who misses its own time by more than the slack is told by how much") {
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

TEST_CASE("liveness: time that was slept through does not count as patience") {
    CHECK(counted_time(milliseconds(20)) == milliseconds(20));
    CHECK(counted_time(milliseconds(6'000)) == milliseconds(100));
}
