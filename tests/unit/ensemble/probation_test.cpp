// herring: tests of ensemble/request_roster.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_roster.hpp"

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

TEST_CASE("probation: a row that is late by less than a wait for a core is in time") {
    constexpr quorum_tuning t{.probation_after = 2, .probation_left_after = 1};
    constexpr std::int64_t ms = 1'000'000;
    probation p;
    for (std::uint64_t request = 1; request < 100; ++request) {
        std::int64_t const now = static_cast<std::int64_t>(request) * 10 * ms;
        CHECK_FALSE(p.missed(request, now + ms, now, t));
        CHECK_FALSE(p.came(request + 1, now, t)); // another's says nothing
        CHECK_FALSE(p.came(request, now + ms - 1, t));
    }
    CHECK_FALSE(p.on());
    CHECK_FALSE(p.missed(100, 1001 * ms, 1000 * ms, t));
    CHECK_FALSE(p.came(100, 1001 * ms, t)); // late
    CHECK_FALSE(p.missed(101, 1101 * ms, 1100 * ms, t));
    CHECK(p.came(101, 1101 * ms, t)); // twice
    CHECK(p.on());
    CHECK_FALSE(p.missed(102, 1201 * ms, 1200 * ms, t));
    CHECK(p.came(102, 1200 * ms, t)); // recovered
    CHECK_FALSE(p.on());
}

TEST_CASE(
    "probation: one absence counts once, however many requests end meanwhile; one without end counts on") {
    constexpr quorum_tuning t{};
    constexpr std::int64_t us = 1000;
    probation p;
    std::uint64_t request = 0;
    for (std::int64_t now = 0; now < 2000 * us; now += 10 * us)
        CHECK_FALSE(p.missed(++request, now + 1000 * us, now, t));
    CHECK_FALSE(p.on()); // 200 requests, in 2 ms: late once
    CHECK_FALSE(p.in_time(t));
    std::int64_t entered = -1;
    for (std::int64_t now = 0; entered < 0 && now < 10'000 * us; now += 10 * us)
        if (p.missed(++request, now + 1000 * us, now, t)) entered = now;
    CHECK(entered == 3000 * us);
    CHECK(p.on());
}

TEST_CASE("probation: what will not come is no verdict") {
    constexpr quorum_tuning t{.probation_after = 1};
    probation p;
    CHECK_FALSE(p.missed(1, 10, 0, t));
    p.forget(2);
    p.forget(1);
    CHECK_FALSE(p.missed(2, 1010, 1000, t)); // that of 1 was not late
    p.forget();
    CHECK_FALSE(p.missed(3, 2010, 2000, t));
    CHECK(p.missed(4, 2020, 2010, t)); // that of 3 was
    CHECK(p.on());
}

} // namespace ensemble_probation_test
