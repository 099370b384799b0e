// herring: tests of ensemble/counters.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/counters.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <vector>

namespace ensemble_lateness_test {

using herring::detail::ensembles::time_window;

TEST_CASE("lateness: of nothing there is none") {
    time_window const none;
    CHECK(none.size() == 0);
    CHECK(none.percentile(50) == -1);
    CHECK(none.percentiles() == herring::time_percentiles{});
}

TEST_CASE("lateness: a time is shown at most 1/32 too high, never too low") {
    std::int64_t before = -1;
    for (std::int64_t ns = 0; ns < std::int64_t{1} << 42; ns += 1 + ns / 50) {
        std::int64_t const shown = time_window::rounded(ns);
        CHECK(shown >= ns);
        CHECK(shown - ns <= ns / 32);
        CHECK(shown >= before);
        CHECK(time_window::rounded(shown) == shown);
        before = shown;
    }
    for (std::int64_t ns = 0; ns < 64; ++ns) CHECK(time_window::rounded(ns) == ns);
    CHECK(time_window::rounded(-5) == 0);
    CHECK(time_window::rounded(std::numeric_limits<std::int64_t>::max()) == (std::int64_t{1} << 42) - 1);
}

TEST_CASE("lateness: percentiles are those of the last 1,024 times") {
    std::mt19937_64 random(7);
    time_window window;
    std::deque<std::int64_t> last;
    std::uint64_t sum = 0;
    for (int i = 0; i < 5000; ++i) {
        // Times drift, so that old ones show where they are not taken out.
        std::int64_t const ns = static_cast<std::int64_t>(random() % 1'000'000) + (i < 2500 ? 5'000'000 : 0);
        window.add(ns);
        sum += static_cast<std::uint64_t>(ns);
        last.push_back(ns);
        if (last.size() > 1024) last.pop_front();
        if (i % 97 != 0 && i > 5) continue;
        std::vector<std::int64_t> sorted(last.begin(), last.end());
        std::sort(sorted.begin(), sorted.end());
        REQUIRE(window.size() == sorted.size());
        for (unsigned const percent : {0u, 1u, 50u, 95u, 99u, 100u}) {
            std::size_t const rank = (sorted.size() * percent + 99) / 100;
            CHECK(window.percentile(percent) == time_window::rounded(sorted[rank > 0 ? rank - 1 : 0]));
        }
        CHECK(window.percentiles().p50_ns == window.percentile(50));
        CHECK(window.percentiles().p95_ns == window.percentile(95));
        CHECK(window.percentiles().p99_ns == window.percentile(99));
    }
    CHECK(window.added() == 5000);
    CHECK(window.sum_ns() == sum);
}

} // namespace ensemble_lateness_test
