// herring: tests of base/lane_math.hpp: the same bits for numbers and vectors, whatever the compiler makes of a · b + c.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/lane_math.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

namespace lanes = herring::lanes;

namespace lane_math_test {

template <class Number> using bits = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;

template <class Number> bits<Number> bits_of(Number value) { return std::bit_cast<bits<Number>>(value); }

/// Numbers of any sign and exponent.
template <class Number> Number drawn(std::mt19937_64& random) {
    Number value;
    do value = std::bit_cast<Number>(static_cast<bits<Number>>(random()));
    while (!std::isfinite(value));
    return value;
}

template <class Number, std::size_t Bytes> void agrees_with_numbers() {
    using several [[gnu::vector_size(Bytes)]] = Number;
    std::mt19937_64 random(7);
    for (int turn = 0; turn < 2000; ++turn) {
        several a, b, c;
        for (std::size_t i = 0; i < Bytes / sizeof(Number); ++i) {
            a[i] = drawn<Number>(random);
            b[i] = drawn<Number>(random);
            c[i] = drawn<Number>(random);
        }
        several const squares = a < 0 ? -a : a;
        several const roots = lanes::sqrt(squares), fused = lanes::fma(a, b, c),
                      product = lanes::product(a, b);
        for (std::size_t i = 0; i < Bytes / sizeof(Number); ++i) {
            Number const x = a[i], y = b[i], z = c[i];
            REQUIRE(bits_of<Number>(roots[i]) == bits_of<Number>(std::sqrt(std::fabs(x))));
            if (!std::isnan(std::fma(x, y, z)))
                REQUIRE(bits_of<Number>(fused[i]) == bits_of<Number>(std::fma(x, y, z)));
            REQUIRE(bits_of<Number>(product[i]) == bits_of<Number>(lanes::product(x, y)));
        }
    }
}

} // namespace lane_math_test

using namespace lane_math_test;

TEST_CASE("lane_math: vectors have the bits of numbers, whether the processor has the instruction or not") {
    agrees_with_numbers<float, 16>();
    agrees_with_numbers<double, 16>();
#if defined(__AVX__) // a vector fits a register
    agrees_with_numbers<float, 32>();
    agrees_with_numbers<double, 32>();
#endif
#if defined(__AVX512F__)
    agrees_with_numbers<float, 64>();
    agrees_with_numbers<double, 64>();
#endif
}

TEST_CASE("lane_math: a product is rounded before something is added to it, a fused one is not") {
    // (1 + e)² = 1 + 2e + e², of which e² is below the last place.
    float const e = std::numeric_limits<float>::epsilon();
    float const x = 1 + e, less = -(1 + 2 * e);
    CHECK(lanes::product(x, x) + less == 0.0f);
    CHECK(lanes::fma(x, x, less) == e * e);
    using four [[gnu::vector_size(16)]] = float;
    four const xs = {x, x, x, x}, all_less = {less, less, less, less};
    four const apart = lanes::product(xs, xs) + all_less, fused = lanes::fma(xs, xs, all_less);
    for (int i = 0; i < 4; ++i) {
        CHECK(apart[i] == 0.0f);
        CHECK(fused[i] == e * e);
    }
}

TEST_CASE("lane_math: a power is the product of its squares") {
    CHECK(lanes::power(0.9, 0) == 1.0);
    CHECK(lanes::power(0.9, 1) == 0.9);
    CHECK(lanes::power(2.0, 62) == std::ldexp(1.0, 62));
    CHECK(lanes::power(0.5, 1'000'000'000) == 0.0);
    CHECK(lanes::power(0.999, 1000) == doctest::Approx(std::pow(0.999, 1000)).epsilon(1e-13));
    // Pinned, so that no other order of products slips in: b¹³ = b · b⁴ · b⁸.
    double const b = 0.999, b2 = b * b, b4 = b2 * b2, b8 = b4 * b4;
    CHECK(lanes::power(b, 13) == (b * b4) * b8);
}
