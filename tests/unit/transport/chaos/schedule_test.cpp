// herring: tests of transport/chaos/schedule.hpp: its random numbers, and the buffer in random order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/chaos/schedule.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <vector>

using herring::detail::draws;
using herring::detail::shuffle_buffer;

TEST_CASE("chaos: a seed gives the same numbers again, below their bound") {
    draws one(5), again(5), other(6);
    bool differs = false;
    for (int i = 0; i < 100; ++i) {
        std::uint64_t const x = one(1000);
        CHECK(x < 1000);
        CHECK(x == again(1000));
        differs = differs || x != other(1000);
    }
    CHECK(differs);
}

TEST_CASE("chaos: no chance never comes, and every chance always") {
    draws random(1);
    for (int i = 0; i < 100; ++i) {
        CHECK_FALSE(random.chance(0));
        CHECK(random.chance(1000));
    }
}

TEST_CASE("chaos: shuffling keeps every value, and keep_if the order of those that stay") {
    shuffle_buffer<int> buffer(50);
    for (int i = 0; i < 50; ++i) buffer.push(i);
    CHECK(buffer.full());
    draws random(3);
    buffer.shuffle(random);
    std::vector<int> seen(buffer.begin(), buffer.end());
    CHECK_FALSE(std::is_sorted(seen.begin(), seen.end()));
    std::sort(seen.begin(), seen.end());
    for (int i = 0; i < 50; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
    std::vector<int> const before(buffer.begin(), buffer.end());
    buffer.keep_if([](int value) { return value % 2 == 0; });
    std::vector<int> even;
    for (int const value : before)
        if (value % 2 == 0) even.push_back(value);
    CHECK(std::equal(buffer.begin(), buffer.end(), even.begin(), even.end()));
}
