// herring: tests of indexed.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/indexed.hpp"

#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstdint>
#include <limits>

using at = herring::indexed<double>;
using herring::update::max;
using herring::update::min;

static_assert(herring::element_type<at> && !herring::element_in_vectors<at>);
static_assert(herring::update_supports<min, at> && herring::update_supports<max, at>);
static_assert(!herring::update_supports<herring::update::sum, at>, "what would the index be?");
static_assert(sizeof(at) == 16 && sizeof(herring::indexed<float, std::int32_t>) == 8);

TEST_CASE("indexed: the least and the greatest value, with their index") {
    CHECK(min::combine(at{2.0, 0}, at{1.0, 1}) == at{1.0, 1});
    CHECK(max::combine(at{2.0, 0}, at{1.0, 1}) == at{2.0, 0});
}
TEST_CASE("indexed: of equal values the lowest index, in whatever order they come") {
    CHECK(min::combine(at{1.0, 7}, at{1.0, 3}) == at{1.0, 3});
    CHECK(min::combine(at{1.0, 3}, at{1.0, 7}) == at{1.0, 3});
    CHECK(max::combine(at{1.0, 7}, at{1.0, 3}) == at{1.0, 3});
    CHECK(max::combine(at{1.0, 3}, at{1.0, 7}) == at{1.0, 3});
}
TEST_CASE("indexed: a NaN wins, the first by its index") {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isnan(min::combine(at{nan, 4}, at{-1.0, 0}).value));
    CHECK(max::combine(at{9.0, 0}, at{nan, 4}).index == 4);
    CHECK(max::combine(at{nan, 5}, at{nan, 4}).index == 4);
    CHECK_FALSE(std::signbit(herring::element<at>::canonical(at{-nan, 4}).value));
}
