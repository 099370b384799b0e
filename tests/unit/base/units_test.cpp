// herring: tests of base/bytes.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/bytes.hpp"

#include "doctest/doctest.h"

#include <type_traits>

TEST_CASE("units: powers of 1024, as std::size_t, at compile time") {
    using namespace herring::literals;
    static_assert(1_KiB == 1024 && 3_MiB == 3 * 1024 * 1024 && 2_GiB == std::size_t{1} << 31);
    static_assert(0_KiB == 0 && 5_GiB == std::size_t{5} << 30);
    static_assert(std::is_same_v<decltype(1_KiB), std::size_t>);
    CHECK(25_MiB == 26'214'400);
}
