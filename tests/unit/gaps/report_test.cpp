// herring: tests of gaps/worker.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gaps/worker.hpp"

#include "doctest/doctest.h"

using namespace std::chrono_literals;

TEST_CASE("gap_report: shares, and the text") {
    herring::gap_report of;
    CHECK(of.share() == 0);
    CHECK(of.lost_by_step() == 0ns);
    of = {.steps = 100,
          .quanta = 4000,
          .late = 4,
          .gaps = 800ms,
          .used = 600ms,
          .lost = 200us,
          .most_lost = 88us};
    CHECK(of.share() == 0.75);
    CHECK(of.lost_by_step() == 2us);
    CHECK(to_string(of) ==
          "100 steps: 800.0 ms of gaps, 75.0 % used by 4000 quanta; 4 were late; a step lost at "
          "most 2.0 us, and none more than 88.0 us");
}
