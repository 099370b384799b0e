// herring: tests of statistics.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/statistics.hpp"

#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstdint>
#include <limits>

using herring::update::sum;
using of_double = herring::statistics<double>;

static_assert(herring::element_type<of_double> && herring::update_supports<sum, of_double>);
static_assert(!herring::update_supports<herring::update::max, of_double>);

TEST_CASE("statistics: of what both have seen") {
    of_double const both = sum::combine(of_double::of(3.0), of_double::of(-1.0));
    CHECK(both == of_double{2.0, -1.0, 3.0, 2});
    CHECK(sum::combine(both, of_double{}) == both);
    CHECK(sum::combine(of_double{}, both) == both);
}
TEST_CASE("statistics: a NaN is in all of it") {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    for (of_double const s : {sum::combine(of_double::of(nan), of_double::of(1.0)),
                              sum::combine(of_double::of(1.0), of_double::of(nan))}) {
        CHECK(std::isnan(s.sum));
        CHECK(std::isnan(s.min));
        CHECK(std::isnan(s.max));
        CHECK(s.count == 2);
    }
}
