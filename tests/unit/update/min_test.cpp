// herring: the update policy `min`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "doctest/doctest.h"

using herring::update::min;

static_assert(std::is_empty_v<min> && std::is_trivial_v<min>, "costs nothing to carry");
static_assert(herring::update_policy<min> && herring::check<herring::axes::update, min>::value);
static_assert(min::name == std::string_view("min"));
static_assert(herring::update_supports<min, float> && herring::update_supports<min, double>);
static_assert(herring::update_supports<min, herring::bfloat16> &&
              herring::update_supports<min, herring::float16>);

static_assert(herring::update_supports<min, std::int32_t> && herring::update_supports<min, std::int64_t>);
static_assert(min::combine(5, -3) == -3 && min::combine(-3, 5) == -3 && min::finish(-3, 4) == -3);
static_assert(min::combine(5.0f, -3.0f) == -3.0f && min::combine(-3.0f, 5.0f) == -3.0f);

TEST_CASE("a NaN wins, on either side") {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    for (double const other : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), nan}) {
        CHECK(std::isnan(min::combine(nan, other)));
        CHECK(std::isnan(min::combine(other, nan)));
    }
}

TEST_CASE("of two equals the lower rank's stays, so grouping does not show") {
    CHECK_FALSE(std::signbit(min::combine(0.0f, -0.0f)));
    CHECK(std::signbit(min::combine(-0.0f, 0.0f)));
    float const values[] = {0.0f, -0.0f, 1.0f, -1.0f, std::numeric_limits<float>::infinity()};
    for (float const a : values)
        for (float const b : values)
            for (float const c : values) {
                auto const left = min::combine(min::combine(a, b), c),
                           right = min::combine(a, min::combine(b, c));
                CHECK(std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right));
            }
}
