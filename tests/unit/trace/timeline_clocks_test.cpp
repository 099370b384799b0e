// herring: tests of trace/timeline_clocks.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_clocks.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <random>

using herring::detail::clock_bounds, herring::detail::clock_fix, herring::detail::measure_clock;

TEST_CASE("clocks: the offset is within the bound, whatever the collectives take and whoever is late") {
    std::mt19937 random(11);
    auto const some = [&](std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(1, most)(random);
    };
    for (int trial = 0; trial < 200; ++trial) {
        std::int64_t const offset = some(1'000'000) - 500'000; // theirs = ours + offset
        clock_bounds bounds;
        std::int64_t now = 1'000'000, narrowest = 1 << 30;
        for (int round = 0; round < 8; ++round) {
            std::int64_t const our_call = now + some(5000), their_call = now + some(5000);
            std::int64_t const all_called = std::max(our_call, their_call);
            std::int64_t const our_return = all_called + some(9000), their_return = all_called + some(9000);
            bounds.add(our_call, our_return, their_call + offset, their_return + offset);
            narrowest = std::min(narrowest, our_return - our_call + their_return - their_call);
            now = std::max(our_return, their_return);
        }
        clock_fix const found = bounds.fix(now);
        CHECK(found.bound_ns >= 0);
        CHECK(std::abs(found.offset_ns - offset) <= found.bound_ns);
        CHECK(found.bound_ns <= narrowest / 2 + 1);
    }
}

TEST_CASE("clocks: rounds that contradict each other have a bound all the same; none have none") {
    CHECK(clock_bounds().fix(5).bound_ns == -1);
    clock_bounds bounds;
    bounds.add(100, 200, 100, 200);
    bounds.add(300, 400, 1'000'300, 1'000'400); // a clock jumped by a millisecond
    CHECK(bounds.fix(400).bound_ns >= 400'000);
}

TEST_CASE("clocks: ranks of one machine have one clock") {
    herring::launch_threads(3, [](herring::world& ranks) {
        clock_fix const found = measure_clock(ranks, 2);
        if (found.offset_ns != 0 || found.bound_ns != 1) throw std::runtime_error("an offset of one clock");
    });
}
