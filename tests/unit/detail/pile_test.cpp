// herring: tests of detail/pile.hpp. SPDX-License-Identifier: Apache-2.0
#include <herring/detail/pile.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

TEST_CASE("pile: values stay in order, within the room that was made and beyond it") {
    for (std::size_t const room : {0u, 3u, 100u}) {
        herring::detail::pile<int> pile(room);
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

TEST_CASE("pile: swaps") {
    herring::detail::pile<int> first, second(4);
    first.push(1);
    first.push(2);
    first.swap(second);
    CHECK(first.empty());
    REQUIRE(second.end() - second.begin() == 2);
    CHECK(*second.begin() == 1);
    first.push(3);
    first.swap(second);
    CHECK(*second.begin() == 3);
    CHECK(first.end() - first.begin() == 2);
}
