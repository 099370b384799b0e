// herring: tests of machine/ticks.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/ticks.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <limits>

using herring::detail::tick_anchor;
using herring::detail::tick_counter;
using herring::detail::tick_line;

TEST_CASE("ticks: a time between two anchors lies between their times, by either counter") {
    for (tick_counter const counter : {tick_counter(), tick_counter(false)}) {
        tick_anchor const first = counter.anchor(5);
        std::uint64_t const between = counter.now();
        while (herring::detail::monotonic_ns() < first.ns + 1'000'000) {
        }
        tick_anchor const last = counter.anchor(5);
        tick_line const line(first, last);
        CHECK(line.ns(first.ticks) == first.ns);
        CHECK(line.ns(last.ticks) - last.ns <= 1);
        CHECK(line.ns(between) <= last.ns);
        CHECK(line.ns(between) >= first.ns);
    }
    CHECK_FALSE(tick_counter(false).is_tsc());
}

TEST_CASE("ticks: a line has a time for any bits") {
    constexpr tick_line line({1000, 50, 0}, {3000, 1050, 0}); // two ticks a nanosecond
    static_assert(line.ns(1000) == 50);
    static_assert(line.ns(5000) == 2050);
    static_assert(line.ns(0) == 50 - 500);
    CHECK(line.ns(std::numeric_limits<std::uint64_t>::max()) == 50 - 500);
    CHECK(line.ns(std::uint64_t{1} << 62) > std::int64_t{1} << 60);
    constexpr tick_line none({5, 5, 0}, {5, 5, 0});
    static_assert(none.ns(9) == 9);
}
