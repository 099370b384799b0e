// herring: tests of wire/same.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/same.hpp"

#include "doctest/doctest.h"

TEST_CASE("same: the element itself") {
    CHECK(std::is_same_v<herring::wire::same::type<float>, float>);
    CHECK(std::is_same_v<herring::wire::same::type<std::int64_t>, std::int64_t>);
    CHECK(std::is_empty_v<herring::wire::same>);
}
