// herring: tests of policy/check.hpp: clauses in order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/check.hpp"

#include "doctest/doctest.h"

namespace {
struct fulfilled {
    static constexpr bool value = true;
};
struct broken {
    static constexpr bool value = false;
};
struct without_a_value {};
} // namespace

TEST_CASE("check: first_broken counts from the front") {
    CHECK(herring::first_broken({}) == -1);
    CHECK(herring::first_broken({true, true}) == -1);
    CHECK(herring::first_broken({true, false, false}) == 1);
    CHECK(herring::first_broken({false}) == 0);
}

TEST_CASE("check: a check holds if its value is true") {
    CHECK(herring::holds<fulfilled>);
    CHECK_FALSE(herring::holds<broken>);
    CHECK_FALSE(herring::holds<without_a_value>);
}
