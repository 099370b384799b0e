// herring: the update policy `average`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "doctest/doctest.h"

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
