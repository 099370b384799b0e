// herring: what is infinite or no number is found, whoever's share it is in.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernel/inspection.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstdint>
#include <vector>

using namespace herring;

namespace {
template <class T> void every_place() {
    for (std::size_t const count : {0u, 1u, 7u, 8u, 63u, 100u})
        for (std::size_t shift = 0; shift < 9; ++shift)
            for (std::size_t const threads : {1u, 3u, 64u}) {
                std::vector<T> room(count + 16, T(1.0f));
                T* const from = room.data() + shift;
                std::size_t want = 0;
                for (std::size_t i = 0; i < count; ++i)
                    if (i % 5 == 1 || i + 1 == count) {
                        from[i] = static_cast<T>(i % 2 == 0 ? -__builtin_inff() : __builtin_nanf(""));
                        ++want;
                    }
                if (shift > 0) from[-1] = static_cast<T>(__builtin_inff()); // beside them: not counted
                from[count] = static_cast<T>(__builtin_inff());
                std::uint64_t found = 0;
                for (std::size_t t = 0; t < threads; ++t)
                    found += gpu::inspect(from, count, t, threads).not_finite;
                CHECK(found == want);
            }
}
} // namespace

TEST_CASE("inspect: what is no number, at every place and alignment") {
    every_place<float>();
    every_place<double>();
    every_place<bfloat16>();
    every_place<float16>();
    std::int32_t const numbers[] = {-1, 0x7f80'0000, 0x7fc0'0000};
    CHECK(gpu::inspect(numbers, 3, 0, 1).not_finite == 0);
}

TEST_CASE("inspect: squares, in double, by any number of threads") {
    std::vector<float> values(1001);
    double want = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i % 97) - 31.25f;
        want += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    for (std::size_t const threads : {1u, 7u, 512u}) {
        double found = 0;
        for (std::size_t t = 0; t < threads; ++t)
            found += gpu::inspect(values.data(), values.size(), t, threads).squares;
        CHECK(found == want); // every sum of these is exact
    }
    values[5] = __builtin_nanf("");
    gpu::inspection_result const none = gpu::inspect(values.data(), values.size(), 0, 1);
    CHECK(none.squares != none.squares);
    CHECK(none.not_finite == 1);
    bfloat16 const small[] = {bfloat16(3.0f), bfloat16(-4.0f)};
    CHECK(gpu::inspect(small, 2, 0, 1).squares == 25);
    std::int64_t const large[] = {std::int64_t{1} << 40};
    CHECK(gpu::inspect(large, 1, 0, 1).squares == 0x1p80);
}

TEST_CASE("not_finite: as the standard library has it") {
    for (std::uint64_t i = 0; i < 1u << 18; ++i) {
        float const f = __builtin_bit_cast(float, static_cast<std::uint32_t>(i << 14));
        if (gpu::detail::not_finite(f) != !std::isfinite(f)) FAIL("float " << i);
    }
    for (std::uint32_t i = 0; i < 1u << 16; ++i) {
        auto const bits = static_cast<std::uint16_t>(i);
        auto const b = bfloat16::from_bits(bits);
        auto const h = float16::from_bits(bits);
        if (gpu::detail::not_finite(b) != !std::isfinite(static_cast<float>(b))) FAIL("bfloat16 " << i);
        if (gpu::detail::not_finite(h) != !std::isfinite(static_cast<float>(h))) FAIL("float16 " << i);
    }
    CHECK(gpu::detail::not_finite(HUGE_VAL));
    CHECK_FALSE(gpu::detail::not_finite(1e308));
}
