// herring: what is stored after a sum on a device is what the host stores, to the bit.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/runtime.hpp"

#include "herring/kernel/lanes.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cstdint>
#include <cstring>

using namespace herring;

namespace {
template <class T, class Bits> bool same(Bits bits) {
    auto const value = std::bit_cast<accumulator<T>>(bits);
    T const here = gpu::stored<T>(value), there = kernel::round_one<T>(value);
    return std::memcmp(&here, &there, sizeof here) == 0;
}
} // namespace

TEST_CASE("stored: as the host rounds, every NaN the same") {
    for (std::uint64_t i = 0; i < 1u << 20; ++i) {
        auto const bits = static_cast<std::uint32_t>(i * 4099u + (i << 12));
        if (!same<float>(bits) || !same<bfloat16>(bits) || !same<float16>(bits)) FAIL("bits " << bits);
    }
    for (std::uint32_t const bits :
         {0u, 0x8000'0000u, 0x7f80'0000u, 0xff80'0000u, 0x7f80'0001u, 0xffff'ffffu, 0x7fc0'0000u,
          0x0000'0001u, 0x477f'efffu, 0x477f'f000u, 0x3880'0000u, 0x3300'0000u}) {
        CHECK(same<float>(bits));
        CHECK(same<bfloat16>(bits));
        CHECK(same<float16>(bits));
    }
    for (std::uint64_t const bits :
         {0ull, 0x7ff0'0000'0000'0000ull, 0x7ff0'0000'0000'0001ull, ~0ull, 0x3ff0'0000'0000'0000ull})
        CHECK(same<double>(bits));
    CHECK(gpu::stored<std::int32_t>(-5) == -5);
}
