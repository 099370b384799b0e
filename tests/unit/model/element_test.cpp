// herring: the 16-bit floats over all their patterns, their rounding against double, and the traits.
// SPDX-License-Identifier: Apache-2.0
#include "herring/element.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

#include "doctest/doctest.h"

using herring::bfloat16;
using herring::float16;

namespace {

struct format {
    int fraction_bits, smallest_exponent; // smallest normal: 2^smallest_exponent
    double largest;
};
template <class T>
constexpr format format_of =
    std::is_same_v<T, bfloat16> ? format{7, -126, 0x1.fep127} : format{10, -14, 65504.0};

// Rounds by arithmetic in double, where every step is exact: nothing here knows of bit patterns.
template <class T> double rounded(float value) {
    format const f = format_of<T>;
    if (std::isnan(value) || std::isinf(value) || value == 0.0f) return static_cast<double>(value);
    int const exponent = std::max(std::ilogb(static_cast<double>(value)), f.smallest_exponent);
    double const unit = std::ldexp(1.0, exponent - f.fraction_bits);
    double const nearest = std::nearbyint(static_cast<double>(value) / unit) * unit; // ties to even
    return std::fabs(nearest) > f.largest ? std::copysign(std::numeric_limits<double>::infinity(), nearest)
                                          : nearest;
}

// The value of a pattern, by definition of the formats.
template <class T> double meaning(std::uint16_t bits) {
    format const f = format_of<T>;
    int const exponent_bits = 15 - f.fraction_bits;
    int const exponent = bits >> f.fraction_bits & ((1 << exponent_bits) - 1);
    int const fraction = bits & ((1 << f.fraction_bits) - 1);
    double const sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(fraction, f.smallest_exponent - f.fraction_bits);
    return sign * std::ldexp(fraction + (1 << f.fraction_bits),
                             exponent - 1 + f.smallest_exponent - f.fraction_bits);
}

template <class T> bool agrees(float value) {
    double const got = static_cast<double>(static_cast<float>(T(value))), want = rounded<T>(value);
    if (std::isnan(want)) return std::isnan(got) && std::signbit(got) == std::signbit(value);
    return got == want && std::signbit(got) == std::signbit(want);
}

} // namespace

TEST_CASE_TEMPLATE("all 65536 patterns mean what the format says, and come back", T, bfloat16, float16) {
    int wrong_meaning = 0, wrong_return = 0;
    for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
        auto const bits = static_cast<std::uint16_t>(pattern);
        float const value = static_cast<float>(T::from_bits(bits));
        double const want = meaning<T>(bits);
        auto const quiet = static_cast<std::uint16_t>(1u << (format_of<T>.fraction_bits - 1));
        if (std::isnan(want)) {
            wrong_meaning += !std::isnan(value) || std::signbit(value) != ((bits & 0x8000) != 0);
            wrong_return += T(value).bits != (bits | quiet); // payload and sign kept, made quiet
        } else {
            wrong_meaning += static_cast<double>(value) != want || std::signbit(value) != std::signbit(want);
            wrong_return += T(value).bits != bits;
        }
    }
    CHECK(wrong_meaning == 0);
    CHECK(wrong_return == 0);
}

TEST_CASE_TEMPLATE("rounding agrees with double arithmetic", T, bfloat16, float16) {
    int wrong = 0;
    // Beside every pattern and beside every midpoint between two, on both sides.
    for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
        float const at = static_cast<float>(T::from_bits(static_cast<std::uint16_t>(pattern)));
        std::uint32_t const bits = std::bit_cast<std::uint32_t>(at);
        std::uint32_t const half = std::is_same_v<T, bfloat16> ? 0x8000u : 0x1000u;
        for (std::uint32_t const offset : {0u, 1u, half - 1, half, half + 1, 0u - 1, 0u - half})
            wrong += !agrees<T>(std::bit_cast<float>(bits + offset));
    }
    CHECK(wrong == 0);
    std::mt19937 from(7);
    for (int i = 0; i < 2'000'000; ++i)
        wrong += !agrees<T>(std::bit_cast<float>(static_cast<std::uint32_t>(from())));
    for (int i = 0; i < 500'000; ++i) // where float16 is subnormal, or overflows
        wrong += !agrees<T>(std::ldexp(static_cast<float>(static_cast<std::int32_t>(from())),
                                       static_cast<int>(from() % 64) - 64));
    CHECK(wrong == 0);
}

TEST_CASE("the edges by name") {
    CHECK(static_cast<float>(float16(65504.0f)) == 65504.0f);
    CHECK(static_cast<float>(float16(65519.996f)) == 65504.0f);
    CHECK(float16(65520.0f).bits == 0x7c00);
    CHECK(float16(-65520.0f).bits == 0xfc00);
    CHECK(float16(5.9604645e-8f).bits == 0x0001);
    CHECK(float16(2.9802322e-8f).bits == 0x0000); // a tie: to even
    CHECK(float16(2.9802326e-8f).bits == 0x0001);
    CHECK(float16(-0.0f).bits == 0x8000);
    CHECK(float16(6.1035156e-5f).bits == 0x0400);
    CHECK(bfloat16(3.3895314e38f).bits == 0x7f7f);
    CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
    CHECK(bfloat16(std::bit_cast<float>(0x7f80'0001u)).bits ==
          0x7fc0); // a NaN whose payload is cut stays a NaN
    CHECK(float16(std::bit_cast<float>(0xff80'0001u)).bits == 0xfe00);
    CHECK(bfloat16(1.00390625f).bits == 0x3f80); // ties to even, down and up
    CHECK(bfloat16(1.01171875f).bits == 0x3f82);
}

TEST_CASE("numbers compare as numbers") {
    CHECK(bfloat16(0.0f) == bfloat16(-0.0f));
    CHECK(float16(1.0f) != float16(2.0f));
    CHECK_FALSE(float16::from_bits(0x7e00) == float16::from_bits(0x7e00));
}

// Usable where the compiler computes.
static_assert(bfloat16(1.5f).bits == 0x3fc0 && static_cast<float>(bfloat16::from_bits(0x3fc0)) == 1.5f);
static_assert(float16(1.5f).bits == 0x3e00 && static_cast<float>(float16::from_bits(0x3e00)) == 1.5f);
static_assert(float16(1e-7f).bits == 0x0002 && float16(1e9f).bits == 0x7c00);

// Conversions are asked for, never slipped in.
static_assert(!std::is_convertible_v<float, bfloat16> && !std::is_convertible_v<bfloat16, float>);
static_assert(!std::is_convertible_v<float, float16> && !std::is_convertible_v<float16, float>);

static_assert(std::is_same_v<herring::accumulator<bfloat16>, float> &&
              std::is_same_v<herring::accumulator<float16>, float>);
static_assert(std::is_same_v<herring::accumulator<double>, double>);
static_assert(std::is_same_v<herring::accumulator<std::int64_t>, std::int64_t>);
static_assert(!herring::element_type<int*> && !herring::element_type<char> &&
              !herring::element_type<std::string>);
static_assert(herring::is_element<bfloat16> && herring::is_element<float16>);

TEST_CASE("ids and names are fixed: they go into digests and errors") {
    CHECK(static_cast<int>(herring::element<float>::id) == 1);
    CHECK(static_cast<int>(herring::element<double>::id) == 2);
    CHECK(static_cast<int>(herring::element<std::int32_t>::id) == 3);
    CHECK(static_cast<int>(herring::element<std::int64_t>::id) == 4);
    CHECK(static_cast<int>(herring::element<bfloat16>::id) == 5);
    CHECK(static_cast<int>(herring::element<float16>::id) == 6);
    CHECK(static_cast<int>(herring::element<std::uint32_t>::id) == 7);
    CHECK(static_cast<int>(herring::element<std::uint64_t>::id) == 8);
    CHECK(static_cast<int>(herring::type_id::own) == 9);
    CHECK(static_cast<int>(herring::element<std::int8_t>::id) == 10);
    CHECK(static_cast<int>(herring::element<std::uint8_t>::id) == 11);
    CHECK(static_cast<int>(herring::element<std::int16_t>::id) == 12);
    CHECK(static_cast<int>(herring::element<std::uint16_t>::id) == 13);
    CHECK(static_cast<int>(herring::element<bool>::id) == 14);
    CHECK(herring::element<std::int8_t>::name == std::string("std::int8_t"));
    CHECK(herring::element<std::uint8_t>::name == std::string("std::uint8_t"));
    CHECK(herring::element<std::int16_t>::name == std::string("std::int16_t"));
    CHECK(herring::element<std::uint16_t>::name == std::string("std::uint16_t"));
    CHECK(herring::element<bool>::name == std::string("bool"));
    CHECK(herring::element<long long>::id == herring::element<long>::id);
    CHECK(herring::element<unsigned long long>::id == herring::element<unsigned long>::id);
    CHECK(to_string(herring::type_id::uint64) == std::string("std::uint64_t"));
    CHECK(herring::element<float16>::name == std::string("herring::float16"));
    CHECK(to_string(herring::type_id::int64) == std::string("std::int64_t"));
}
