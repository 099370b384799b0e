// herring: the update policy `logical_or`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "doctest/doctest.h"

using herring::update::logical_or;

static_assert(std::is_empty_v<logical_or> && std::is_trivial_v<logical_or>, "costs nothing to carry");
static_assert(herring::update_policy<logical_or> && herring::check<herring::axes::update, logical_or>::value);
static_assert(logical_or::name == std::string_view("logical_or"));
static_assert(herring::update_supports<logical_or, int> &&
              herring::update_supports<logical_or, unsigned long long>);
static_assert(!herring::update_supports<logical_or, float>, "as MPI's, of integers");

TEST_CASE("logical_or: 0 or 1, whatever the numbers") {
    CHECK(logical_or::combine(5, -3) == 1);
    CHECK(logical_or::combine(0u, 0x8000'0000u) == 1);
    CHECK(logical_or::combine(0, 0) == 0);
    CHECK(logical_or::finish(7, 1) == 1); // one rank alone
}
