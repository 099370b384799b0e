// herring: tests of update/rules.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

using herring::update::average;

static_assert(std::is_empty_v<average> && std::is_trivial_v<average>, "costs nothing to carry");
static_assert(herring::update_policy<average> && herring::check<herring::axes::update, average>::value);
static_assert(average::name == std::string_view("average"));
static_assert(herring::update_supports<average, float> && herring::update_supports<average, double>);
static_assert(herring::update_supports<average, herring::bfloat16> &&
              herring::update_supports<average, herring::float16>);

static_assert(!herring::update_supports<average, std::int32_t> &&
                  !herring::update_supports<average, std::int64_t>,
              "an average of integers would be cut to whole numbers");
static_assert(average::finish(average::combine(1.0, 2.0), 2) == 1.5);

TEST_CASE("the power-of-two short cut gives the bits of the division") {
    for (int const ranks : {1, 2, 4, 64, 1024, 3, 5, 6, 7, 1000})
        for (float const total : {1.0f, -3.25f, 1e-45f, 3e-45f, 1.1754944e-38f, 3.4028235e38f, 0.1f, -0.0f,
                                  std::numeric_limits<float>::infinity()}) {
            float finished = 0;
            average::with_finish<float>(ranks, [&](auto finish) { finished = finish(total); });
            CAPTURE(ranks);
            CAPTURE(total);
            CHECK(std::bit_cast<std::uint32_t>(finished) ==
                  std::bit_cast<std::uint32_t>(total / static_cast<float>(ranks)));
            CHECK(std::bit_cast<std::uint32_t>(finished) ==
                  std::bit_cast<std::uint32_t>(average::finish(total, ranks)));
        }
}

TEST_CASE("vectors finish as their lanes do") {
    typedef float four __attribute__((vector_size(16)));
    four const total{1.0f, 2.0f, 3.0f, -7.0f};
    four const got = average::finish(total, 3);
    for (int lane = 0; lane < 4; ++lane) CHECK(got[lane] == total[lane] / 3.0f);
}

using herring::update::sum;

static_assert(std::is_empty_v<sum> && std::is_trivial_v<sum>, "costs nothing to carry");
static_assert(herring::update_policy<sum> && herring::check<herring::axes::update, sum>::value);
static_assert(sum::name == std::string_view("sum"));
static_assert(herring::update_supports<sum, float> && herring::update_supports<sum, double>);
static_assert(herring::update_supports<sum, herring::bfloat16> &&
              herring::update_supports<sum, herring::float16>);

static_assert(herring::update_supports<sum, std::int32_t> && herring::update_supports<sum, std::int64_t>);
static_assert(sum::finish(sum::combine(1.0f, 2.0f), 7) == 3.0f);
static_assert(sum::combine(std::numeric_limits<std::int32_t>::max(), 1) ==
                  std::numeric_limits<std::int32_t>::min(),
              "wraps");
static_assert(sum::combine(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
              std::numeric_limits<std::int64_t>::max());

TEST_CASE("a NaN of any rank is in the sum") { CHECK(std::isnan(sum::combine(1.0, std::nan("")))); }

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

using herring::update::product;

static_assert(std::is_empty_v<product> && std::is_trivial_v<product>, "costs nothing to carry");
static_assert(herring::update_policy<product> && herring::check<herring::axes::update, product>::value);
static_assert(product::name == std::string_view("product"));
static_assert(herring::update_supports<product, float> &&
              herring::update_supports<product, herring::bfloat16>);
static_assert(herring::update_supports<product, std::int32_t> &&
              herring::update_supports<product, unsigned long>);
static_assert(product::finish(product::combine(1.5f, 2.0f), 7) == 3.0f);

TEST_CASE("product: integers wrap") {
    CHECK(product::combine(std::numeric_limits<std::int32_t>::max(), 2) == -2);
    CHECK(product::combine(std::int64_t{1} << 62, std::int64_t{4}) == 0);
    CHECK(product::combine(0x8000'0001u, 2u) == 2u);
}

// In constants, where an overflow of int would not compile: 65535 · 65535 is more than an int has.
static_assert(product::combine(std::uint16_t{65535}, std::uint16_t{65535}) == 1);
static_assert(product::combine(std::int8_t{-128}, std::int8_t{-1}) == -128);
static_assert(sum::combine(std::int8_t{127}, std::int8_t{1}) == -128);
static_assert(sum::combine(std::uint16_t{65535}, std::uint16_t{2}) == 1);
static_assert(!herring::update_supports<average, std::int8_t> &&
              !herring::update_supports<average, std::uint16_t>);

TEST_CASE("bool: the logical rules, min and max; it is not a number") {
    using herring::update::logical_and, herring::update::logical_or;
    CHECK(herring::update_supports<logical_and, bool>);
    CHECK(herring::update_supports<logical_or, bool>);
    CHECK(herring::update_supports<min, bool>);
    CHECK(herring::update_supports<max, bool>);
    CHECK_FALSE(herring::update_supports<sum, bool>);
    CHECK_FALSE(herring::update_supports<product, bool>);
    CHECK_FALSE(herring::update_supports<average, bool>);
}

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
