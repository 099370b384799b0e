// herring: tests of optimizer/lamb.hpp: the first step by hand, and ratios that are not there.
// SPDX-License-Identifier: Apache-2.0
#include "herring/optimizer/lamb.hpp"
#include "herring/training.hpp"

#include "doctest/doctest.h"

using herring::optimizer::lamb;

TEST_CASE("lamb: in the first step the direction is the gradient's sign, and the decay") {
    float state[2] = {0, 0};
    auto const with = lamb::prepare<float>({.rate = 0.1, .epsilon = 0, .decay = 0.5}, 1);
    float const direction = lamb::direction(2.0f, -0.25f, state, with);
    CHECK(direction == doctest::Approx(-1 + 0.5 * 2)); // m̂ / √v̂ = g / |g|
    CHECK(state[0] == doctest::Approx(-0.025));
    CHECK(state[1] == doctest::Approx(0.0000625));
    float weight = 2;
    lamb::step(weight, 3.0f, state, lamb::adapt(with, {.weights = 4, .directions = 8}));
    CHECK(weight == doctest::Approx(2 - 0.1 * 4 / 8 * 3));
}

TEST_CASE("lamb: where a norm is 0 the ratio is 1") {
    auto const with = lamb::prepare<double>({}, 3);
    CHECK(lamb::adapt(with, {.weights = 0, .directions = 8}).rate == with.rate);
    CHECK(lamb::adapt(with, {.weights = 4, .directions = 0}).rate == with.rate);
    CHECK(lamb::adapt(with, {.weights = 4, .directions = 8}).rate == with.rate / 2);
}
