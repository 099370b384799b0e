// herring: tests of ensemble/probation.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/probation.hpp"

#include "doctest/doctest.h"

namespace ensemble_probation_test {

using herring::quorum_tuning;
using herring::detail::ensembles::probation;

TEST_CASE("probation: three times late in a row, and three times in time") {
    constexpr quorum_tuning t{};
    probation p;
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.in_time(t)); // not in a row
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.on());
    CHECK(p.late(t));
    CHECK(p.on());
    CHECK_FALSE(p.late(t)); // it is on already
    CHECK_FALSE(p.in_time(t));
    CHECK_FALSE(p.in_time(t));
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.in_time(t));
    CHECK_FALSE(p.in_time(t));
    CHECK(p.on());
    CHECK(p.in_time(t));
    CHECK_FALSE(p.on());
    CHECK_FALSE(p.late(t)); // counts from the beginning
    CHECK_FALSE(p.late(t));
    CHECK(p.late(t));
}

TEST_CASE("probation: numbers of the tuning, and none") {
    constexpr quorum_tuning quick{.probation_after = 1, .probation_left_after = 1};
    probation p;
    CHECK(p.late(quick));
    CHECK(p.in_time(quick));
    CHECK_FALSE(p.on());
    constexpr quorum_tuning never{.probation_after = 0};
    for (int i = 0; i < 100; ++i) CHECK_FALSE(p.late(never));
    CHECK_FALSE(p.on());
}

} // namespace ensemble_probation_test
