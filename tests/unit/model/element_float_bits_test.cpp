// herring: tests of model/element.hpp: every 16-bit value against arithmetic, and ties.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/element.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstdint>
#include <limits>

using bits = herring::detail::scalar_float_bits;

namespace {

/// A finite binary16 by its definition.
double value_of_float16(std::uint32_t half) {
    int const exponent = static_cast<int>(half >> 10 & 0x1f), fraction = static_cast<int>(half & 0x3ff);
    double const magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}
std::uint32_t of_float(float value) { return bits::as<std::uint32_t>(value); }
std::uint32_t low_half(std::int32_t narrow) { return static_cast<std::uint32_t>(narrow) & 0xffff; }

} // namespace

TEST_CASE("float_bits: every finite float16 widens to its value, and narrows back") {
    int wrong = 0, lost = 0;
    for (std::uint32_t half = 0; half < 0x10000; ++half) {
        if ((half & 0x7c00) == 0x7c00) continue;
        std::uint32_t const wide = bits::widen_float16(half);
        wrong += wide != of_float(static_cast<float>(value_of_float16(half)));
        lost += low_half(bits::narrow_float16(wide)) != half;
    }
    CHECK(wrong == 0);
    CHECK(lost == 0);
}

TEST_CASE("float_bits: float16 infinities stay, and every NaN becomes the quiet one of its sign") {
    CHECK(bits::widen_float16(0x7c00) == bits::infinity);
    CHECK(low_half(bits::narrow_float16(bits::infinity)) == 0x7c00);
    CHECK(low_half(bits::narrow_float16(bits::infinity | 0x8000'0000u)) == 0xfc00);
    CHECK(low_half(bits::narrow_float16(bits::infinity + 1)) == 0x7e00);
    CHECK(low_half(bits::narrow_float16(0xffff'ffffu)) == 0xfe00);
    for (std::uint32_t payload = 1; payload < 0x400; ++payload)
        CHECK(bits::widen_float16(0x7c00 | payload) > bits::infinity);
}

TEST_CASE("float_bits: float16 rounds to nearest, ties to even, and overflows to infinity") {
    auto const narrow = [](double value) {
        return low_half(bits::narrow_float16(of_float(static_cast<float>(value))));
    };
    int wrong = 0;
    for (std::uint32_t half = 0; half < 0x7bff; ++half) { // halfway to the next value, exact as a float
        double const low = value_of_float16(half), high = value_of_float16(half + 1);
        double const middle = (low + high) / 2;
        float const step = std::nextafter(static_cast<float>(middle), std::numeric_limits<float>::infinity());
        wrong += narrow(middle) != (half % 2 == 0 ? half : half + 1);
        wrong += narrow(step) != half + 1;
    }
    CHECK(wrong == 0);
    CHECK(narrow(65519.996) == 0x7bff); // the largest float16 is 65504
    CHECK(narrow(65520) == 0x7c00);
    CHECK(narrow(-1e30) == 0xfc00);
    CHECK(narrow(std::ldexp(1, -25)) == 0); // a tie with zero
    CHECK(narrow(-std::ldexp(1, -26)) == 0x8000);
}

TEST_CASE("float_bits: a narrow result is sign-extended") {
    CHECK(bits::narrow_float16(of_float(-1)) == static_cast<std::int32_t>(0xffff'bc00u));
    CHECK(bits::narrow_bfloat16(of_float(-1)) == static_cast<std::int32_t>(0xffff'bf80u));
    CHECK(bits::narrow_float16(of_float(1)) == 0x3c00);
}

TEST_CASE("float_bits: bfloat16 is the upper half, rounded to nearest, ties to even") {
    int lost = 0, wrong = 0;
    for (std::uint32_t half = 0; half < 0x7f80; ++half) {
        std::uint32_t const wide = bits::widen_bfloat16(half);
        lost += low_half(bits::narrow_bfloat16(wide)) != half;
        wrong += low_half(bits::narrow_bfloat16(wide + 0x7fff)) != half;
        wrong += low_half(bits::narrow_bfloat16(wide + 0x8000)) != (half % 2 == 0 ? half : half + 1);
        wrong += low_half(bits::narrow_bfloat16(wide + 0x8001)) != half + 1;
    }
    CHECK(lost == 0);
    CHECK(wrong == 0);
}
