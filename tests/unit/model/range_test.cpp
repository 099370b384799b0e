// herring: tests of model/range.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/range.hpp"

#include "doctest/doctest.h"

using herring::intersection;
using herring::owned_range;
using herring::range;

TEST_CASE("range: what ranks own covers the buffer once, in order, and differs by one element at most") {
    for (std::size_t n = 0; n < 70; ++n)
        for (int ranks = 1; ranks < 12; ++ranks) {
            std::size_t next = 0;
            for (int r = 0; r < ranks; ++r) {
                range const own = owned_range(n, r, ranks);
                CHECK(own.offset == next);
                CHECK(own.elements >= n / static_cast<std::size_t>(ranks));
                CHECK(own.elements <= n / static_cast<std::size_t>(ranks) + 1);
                next = own.end();
            }
            CHECK(next == n);
        }
    static_assert(owned_range(10, 0, 4) == range{0, 3});
    static_assert(owned_range(10, 3, 4) == range{8, 2});
}

TEST_CASE("range: an intersection is in both, and empty where they have nothing in common") {
    CHECK(intersection({2, 5}, {4, 9}) == range{4, 3});
    CHECK(intersection({4, 9}, {2, 5}) == range{4, 3});
    CHECK(intersection({0, 3}, {3, 3}).elements == 0);
    CHECK(intersection({0, 3}, {9, 3}).elements == 0);
    CHECK(intersection({0, 10}, {3, 2}) == range{3, 2});
}
