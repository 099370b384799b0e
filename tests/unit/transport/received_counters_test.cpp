// herring: tests of transport/received_counters.hpp, against a set.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/received_counters.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

using herring::detail::counter_is;
using herring::detail::received_counters;

TEST_CASE("received_counters: in order, and each of them again, at once or much later") {
    received_counters seen(4, 64);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        REQUIRE(seen.take(i) == counter_is::fresh);
        REQUIRE(seen.take(i) == counter_is::repeated);
    }
    for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(seen.take(i) == counter_is::repeated);
}

TEST_CASE("received_counters: a message that is later than the bitmap is long is no repeated one") {
    received_counters seen(4, 64); // a bitmap of 64
    for (std::uint64_t i = 0; i < 5000; ++i)
        if (i % 100 != 7 && i != 0) REQUIRE(seen.take(i) == counter_is::fresh);
    CHECK_FALSE(seen.seen(0));
    CHECK_FALSE(seen.seen(5000));
    CHECK(seen.seen(1));
    CHECK(seen.take(0) == counter_is::fresh);
    CHECK(seen.seen(0));
    for (std::uint64_t i = 7; i < 5000; i += 100) {
        REQUIRE(seen.take(i) == counter_is::fresh);
        REQUIRE(seen.take(i) == counter_is::repeated);
    }
    CHECK(seen.take(0) == counter_is::repeated);
    CHECK(seen.take(5000) == counter_is::fresh);
}

TEST_CASE("received_counters: any order, with repeated ones, against a set") {
    std::mt19937_64 random(3);
    for (int run = 0; run < 50; ++run) {
        received_counters seen(8, 64);
        std::set<std::uint64_t> model;
        std::vector<std::uint64_t> under_way;
        std::uint64_t next = 0;
        for (int i = 0; i < 4000; ++i) {
            while (under_way.size() < 30) under_way.push_back(next++);
            std::uint64_t counter = 0;
            if (random() % 4 == 0 && !model.empty()) {
                counter = random() % next; // any; many have come
            } else {
                std::size_t const at = random() % (random() % 8 == 0 ? under_way.size() : 4);
                counter = under_way[at];
            }
            std::erase(under_way, counter);
            bool const fresh = model.insert(counter).second;
            REQUIRE(seen.seen(counter) == !fresh);
            REQUIRE(seen.take(counter) == (fresh ? counter_is::fresh : counter_is::repeated));
        }
    }
}

TEST_CASE("received_counters: more that are missing than there is room for are messages that were lost") {
    received_counters ahead(1, 64);
    CHECK(ahead.take(64) == counter_is::beyond);
    received_counters halves(1, 64); // every other one never comes
    counter_is last = counter_is::fresh;
    std::uint64_t i = 0;
    for (; i < 1000 && last == counter_is::fresh; i += 2) last = halves.take(i);
    CHECK(last == counter_is::beyond);
    CHECK(i > 128); // a bitmap and a list of 64 each
}
