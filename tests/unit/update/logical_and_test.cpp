// herring: the update policy `logical_and`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "doctest/doctest.h"

using herring::update::logical_and;

static_assert(std::is_empty_v<logical_and> && std::is_trivial_v<logical_and>, "costs nothing to carry");
static_assert(herring::update_policy<logical_and> &&
              herring::check<herring::axes::update, logical_and>::value);
static_assert(logical_and::name == std::string_view("logical_and"));
static_assert(herring::update_supports<logical_and, int> &&
              herring::update_supports<logical_and, unsigned long long>);
static_assert(!herring::update_supports<logical_and, float>, "as MPI's, of integers");

TEST_CASE("logical_and: 0 or 1, whatever the numbers") {
    CHECK(logical_and::combine(5, -3) == 1);
    CHECK(logical_and::combine(5u, 0u) == 0);
    CHECK(logical_and::combine(4, 2) == 1); // not bit by bit
    CHECK(logical_and::finish(7, 1) == 1);  // one rank alone
}
