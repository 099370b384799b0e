// herring: tests of kernel/squares.hpp: the sum of squares has the documented order, whatever the build.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/squares.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace squares_test {

using herring::kernel::sum_of_squares;

template <class Number> std::vector<Number> drawn(std::size_t count) {
    std::mt19937_64 random(7);
    std::vector<Number> made(count);
    for (Number& value : made)
        value = static_cast<Number>(static_cast<double>(random() >> 11) * 0x1p-53 - 0.3);
    return made;
}

template <class Number> void agrees(std::size_t count) {
    std::vector<Number> const values = drawn<Number>(count);
    double sums[8] = {};
    for (std::size_t i = 0; i < count; ++i) {
        double const volatile square = static_cast<double>(values[i]) * static_cast<double>(values[i]);
        sums[i % 8] += square;
    }
    double due = 0;
    for (double const one : sums) due += one;
    CHECK(std::bit_cast<std::uint64_t>(sum_of_squares(values.data(), count)) ==
          std::bit_cast<std::uint64_t>(due));
}

} // namespace squares_test

TEST_CASE("squares: eight sums, added in order, for every remainder") {
    for (std::size_t const count : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 1000u, 1003u}) {
        squares_test::agrees<float>(count);
        squares_test::agrees<double>(count);
    }
}

TEST_CASE("squares: what is not finite shows, and the greatest float does not overflow") {
    for (std::size_t const at : {0u, 5u, 16u}) {
        std::vector<float> values(17, std::numeric_limits<float>::max());
        CHECK(std::isfinite(squares_test::sum_of_squares(values.data(), values.size())));
        values[at] = std::numeric_limits<float>::infinity();
        CHECK(std::isinf(squares_test::sum_of_squares(values.data(), values.size())));
        values[at] = std::numeric_limits<float>::quiet_NaN();
        CHECK(std::isnan(squares_test::sum_of_squares(values.data(), values.size())));
    }
}
