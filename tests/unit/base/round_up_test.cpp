// herring: tests of base/bytes.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/bytes.hpp"

#include "doctest/doctest.h"

using herring::detail::divide_up;
using herring::detail::round_up;

TEST_CASE("round_up: to the next multiple, and no further") {
    CHECK(divide_up(0, 7) == 0);
    CHECK(divide_up(1, 7) == 1);
    CHECK(divide_up(7, 7) == 1);
    CHECK(divide_up(8, 7) == 2);
    CHECK(round_up(0, 64) == 0);
    CHECK(round_up(1, 64) == 64);
    CHECK(round_up(64, 64) == 64);
    CHECK(round_up(65, 64) == 128);
    CHECK(round_up(10, 3) == 12);
    static_assert(round_up(4097, 4096) == 8192);
}
