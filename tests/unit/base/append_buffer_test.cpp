// herring: tests of base/fixed_array.hpp. SPDX-License-Identifier: Apache-2.0
#include <herring/base/fixed_array.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

TEST_CASE("pile: values stay in order, within the room that was made and beyond it") {
    for (std::size_t const room : {0u, 3u, 100u}) {
        herring::detail::append_buffer<int> pile(room);
        std::vector<int> twin;
        int const* const before = pile.begin();
        for (int i = 0; i < 50; ++i) {
            CHECK(pile.empty() == twin.empty());
            pile.push(i * i);
            twin.push_back(i * i);
            REQUIRE(std::equal(pile.begin(), pile.end(), twin.begin(), twin.end()));
        }
        CHECK((pile.begin() == before) == (room >= 50));
        pile.clear();
        CHECK(pile.empty());
    }
}

TEST_CASE("double pile: what is pushed while it is handed out comes the next time") {
    herring::detail::drain_buffer<int> pile(2);
    std::vector<int> seen;
    auto take = [&](int value) {
        seen.push_back(value);
        if (value < 3) pile.push(value + 10);
    };
    CHECK(pile.hand_out(take) == 0);
    for (int i = 0; i < 5; ++i) pile.push(i);
    CHECK(pile.hand_out(take) == 5);
    CHECK(seen == std::vector{0, 1, 2, 3, 4});
    CHECK_FALSE(pile.empty());
    CHECK(pile.hand_out(take) == 3);
    CHECK(seen == std::vector{0, 1, 2, 3, 4, 10, 11, 12});
    CHECK(pile.empty());
}
