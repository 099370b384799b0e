// herring: tests of complex.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/complex.hpp"

#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstdint>
#include <limits>

using number = std::complex<double>;
namespace update = herring::update;

static_assert(herring::element_type<number> && herring::element_type<std::complex<float>>);
static_assert(herring::update_supports<update::sum, number> &&
              herring::update_supports<update::average, number>);
static_assert(herring::update_supports<update::product, number> &&
              !herring::update_supports<update::min, number>);

TEST_CASE("complex: sums, products, averages") {
    CHECK(update::sum::combine(number{1, 2}, number{3, -5}) == number{4, -3});
    CHECK(update::product::combine(number{0, 1}, number{0, 1}) == number{-1, 0});
    CHECK(update::average::finish(number{6, 3}, 3) == number{2, 1});
}
TEST_CASE("complex: every NaN is one") {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    number const x = herring::element<number>::canonical({-nan, 2});
    CHECK_FALSE(std::signbit(x.real()));
    CHECK(x.imag() == 2);
}
