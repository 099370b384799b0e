// herring: tests of sync/sync.hpp: ballot.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/sync.hpp"

#include "doctest/doctest.h"

#include <cstddef>

TEST_CASE("ballot: a bit a bucket, shared beyond 512") {
    herring::sync::ballot one;
    CHECK_FALSE(one.any());
    one.set(65);
    one.set(511);
    for (std::size_t b = 0; b < 1200; ++b) CHECK(one.has(b) == (b % 512 == 65 || b % 512 == 511));
    CHECK(one.any());
    one.set(1024 + 3);
    CHECK(one.has(3));
    CHECK(herring::sync::ballot::all().has(300));
    CHECK(one != herring::sync::ballot::all());
}
