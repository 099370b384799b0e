// herring: exponential and logarithm against long double, and lanes against numbers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/exponential.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "doctest/doctest.h"
#include "sanitizers.hpp"

namespace exponential_test {

constexpr std::uint32_t step = HERRING_TEST_ASAN || HERRING_TEST_TSAN ? 100'003 : 1009;

/// The distance in units of the exact value's last place; of results near 0 in units of the least normal number's.
double ulps(float got, long double exact) {
    int exponent = 0;
    (void)std::frexp(exact, &exponent);
    return static_cast<double>(
        std::fabs((static_cast<long double>(got) - exact) / std::ldexp(1.0L, std::max(exponent, -125) - 24)));
}

using lanes = herring::kernel::vector<float>;
constexpr std::size_t width = sizeof(lanes) / sizeof(float);

TEST_CASE("exponential: within 2 ulp, for every kind of number that is not positive") {
    double worst = 0;
    float at = 0;
    // Bits of the floats from −0 to the least exponent, evenly: most of them are tiny.
    auto const last = std::bit_cast<std::uint32_t>(herring::kernel::least_exponent);
    auto const look = [&](float x) {
        double const off = ulps(herring::kernel::exponential(x), std::exp(static_cast<long double>(x)));
        if (off > worst) worst = off, at = x;
    };
    for (std::uint32_t bits = 0x8000'0000u; bits <= last; bits += step) look(std::bit_cast<float>(bits));
    for (float x = 0; x >= herring::kernel::least_exponent; x -= static_cast<float>(step) * 1e-6f) look(x);
    look(herring::kernel::least_exponent);
    CAPTURE(at);
    CAPTURE(worst);
    CHECK(worst <= 2);
    CHECK(herring::kernel::exponential(0.0f) == 1.0f);
    CHECK(herring::kernel::exponential(-0.0f) == 1.0f);
    CHECK(herring::kernel::exponential(std::nextafter(herring::kernel::least_exponent, -100.0f)) == 0.0f);
    for (float const x : {-88.0f, -1e3f, -1e30f, -3.4028235e38f, -std::numeric_limits<float>::infinity()})
        CHECK(herring::kernel::exponential(x) == 0.0f);
}

TEST_CASE("logarithm: within 2 ulp, for every normal number") {
    double worst = 0;
    float at = 0;
    auto const look = [&](float x) {
        double const off = ulps(herring::kernel::logarithm(x), std::log(static_cast<long double>(x)));
        if (off > worst) worst = off, at = x;
    };
    for (std::uint32_t bits = 0x0080'0000u; bits <= 0x7f7f'ffffu; bits += step)
        look(std::bit_cast<float>(bits));
    for (float x = 0.5f; x < 2.0f; x += static_cast<float>(step) * 1e-8f) look(x);
    CAPTURE(at);
    CAPTURE(worst);
    CHECK(worst <= 2);
    CHECK(herring::kernel::logarithm(1.0f) == 0.0f);
    CHECK(std::isfinite(herring::kernel::logarithm(0.0f)));
}

TEST_CASE("a lane and a number have the same bits") {
    std::uint32_t seed = 1;
    for (int round = 0; round < 10'000; ++round) {
        lanes x{};
        for (std::size_t i = 0; i < width; ++i) {
            seed = seed * 1664525u + 1013904223u;
            x[i] = static_cast<float>(seed >> 8) * (90.0f / (1 << 24));
        }
        auto const four = herring::kernel::exponential(herring::kernel::block<float>{-x, x - x, -x - x, -x});
        lanes const up = herring::kernel::exponential(-x), down = herring::kernel::logarithm(x + 1e-6f);
        for (std::size_t i = 0; i < width; ++i) {
            CHECK(float(four.a[i]) == float(up[i]));
            CHECK(float(four.b[i]) == 1.0f);
            CHECK(float(four.c[i]) == herring::kernel::exponential(-2 * float(x[i])));
            CHECK(float(four.d[i]) == float(up[i]));
            CHECK(std::bit_cast<std::uint32_t>(float(up[i])) ==
                  std::bit_cast<std::uint32_t>(herring::kernel::exponential(-float(x[i]))));
            CHECK(std::bit_cast<std::uint32_t>(float(down[i])) ==
                  std::bit_cast<std::uint32_t>(herring::kernel::logarithm(float(x[i]) + 1e-6f)));
        }
    }
}

// What every build must give, with FMA or without: the fingerprint of a range of results.
TEST_CASE("the bits are those of every other build") {
    std::uint64_t print = 14695981039346656037u;
    for (int i = 0; i < 20'000; ++i) {
        float const x = static_cast<float>(i) / 256; // exact, so that the test itself has the same bits
        for (float const y : {herring::kernel::exponential(-x), herring::kernel::logarithm(x + 0.125f)})
            print = (print ^ std::bit_cast<std::uint32_t>(y)) * 1099511628211u;
    }
    CHECK(print == 13770707124200793996u);
}

} // namespace exponential_test
