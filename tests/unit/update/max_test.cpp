// herring: the update policy `max`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "doctest/doctest.h"

using herring::update::max;

static_assert(std::is_empty_v<max> && std::is_trivial_v<max>, "costs nothing to carry");
static_assert(herring::update_policy<max> && herring::check<herring::axes::update, max>::value);
static_assert(max::name == std::string_view("max"));
static_assert(herring::update_supports<max, float> && herring::update_supports<max, double>);
static_assert(herring::update_supports<max, herring::bfloat16> &&
              herring::update_supports<max, herring::float16>);

static_assert(herring::update_supports<max, std::int32_t> && herring::update_supports<max, std::int64_t>);
static_assert(max::combine(5, -3) == 5 && max::combine(-3, 5) == 5 && max::finish(5, 4) == 5);
static_assert(max::combine(5.0f, -3.0f) == 5.0f && max::combine(-3.0f, 5.0f) == 5.0f);

TEST_CASE("a NaN wins, on either side") {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    for (double const other : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), nan}) {
        CHECK(std::isnan(max::combine(nan, other)));
        CHECK(std::isnan(max::combine(other, nan)));
    }
}

TEST_CASE("of two equals the lower rank's stays, so grouping does not show") {
    CHECK_FALSE(std::signbit(max::combine(0.0f, -0.0f)));
    CHECK(std::signbit(max::combine(-0.0f, 0.0f)));
    float const values[] = {0.0f, -0.0f, 1.0f, -1.0f, std::numeric_limits<float>::infinity()};
    for (float const a : values)
        for (float const b : values)
            for (float const c : values) {
                auto const left = max::combine(max::combine(a, b), c),
                           right = max::combine(a, max::combine(b, c));
                CHECK(std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right));
            }
}
