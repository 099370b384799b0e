// herring: tests of gpu/kernel/fold_args.hpp: how a sum is stored, as the host stores it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernel/fold_args.hpp"

#include "doctest/doctest.h"

#include "herring/kernel/lanes.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

using namespace herring;

namespace {

template <class To, class From> To bits_of(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To bits;
    std::memcpy(static_cast<void*>(&bits), &value, sizeof bits);
    return bits;
}

// Results of devices have the bits of those of the host.
template <class Element> int different(std::uint64_t samples) {
    using Accumulator = accumulator<Element>;
    using word = std::conditional_t<sizeof(Accumulator) == 4, std::uint32_t, std::uint64_t>;
    std::mt19937_64 random(samples);
    int count = 0;
    for (std::uint64_t i = 0; i < samples; ++i) {
        auto const value = bits_of<Accumulator>(static_cast<word>(random()));
        Element const device = gpu::stored<Element>(value), host = kernel::round_one<Element>(value);
        count += std::memcmp(&device, &host, sizeof device) != 0;
    }
    return count;
}

} // namespace

TEST_CASE("fold_args: every NaN is stored as the canonical one, infinities and zeroes as they are") {
    for (std::uint32_t const nan : {0x7fc0'0000u, 0x7f80'0001u, 0xffc0'0000u, 0xffff'ffffu, 0x7fff'ffffu})
        CHECK(bits_of<std::uint32_t>(gpu::stored<float>(bits_of<float>(nan))) == 0x7fc0'0000u);
    for (std::uint64_t const nan : {0x7ff0'0000'0000'0001u, 0xfff8'0000'0000'0000u})
        CHECK(bits_of<std::uint64_t>(gpu::stored<double>(bits_of<double>(nan))) == 0x7ff8'0000'0000'0000u);
    for (float const kept : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                             0.0F, -0.0F, std::numeric_limits<float>::denorm_min()})
        CHECK(bits_of<std::uint32_t>(gpu::stored<float>(kept)) == bits_of<std::uint32_t>(kept));
}

TEST_CASE("fold_args: a 16-bit element is rounded once, to nearest") {
    CHECK(static_cast<float>(gpu::stored<float16>(1.00048828125F)) == 1.0F); // a tie
    CHECK(static_cast<float>(gpu::stored<float16>(1.0004884F)) == 1.0009765625F);
    CHECK(static_cast<float>(gpu::stored<bfloat16>(1.00390625F)) == 1.0F);
    CHECK(static_cast<float>(gpu::stored<bfloat16>(3e38F)) > 2.9e38F);
}

TEST_CASE("fold_args: the bits of the host, for any accumulator") {
    auto const alike = []<class Element>(Element, std::uint32_t bits) {
        Element const device = gpu::stored<Element>(bits_of<float>(bits)),
                      host = kernel::round_one<Element>(bits_of<float>(bits));
        return std::memcmp(&device, &host, sizeof device) == 0;
    };
    for (std::uint32_t const bits :
         {0u, 0x8000'0000u, 0x7f80'0000u, 0xff80'0000u, 0x7f80'0001u, 0xffff'ffffu, 0x7fc0'0000u, 1u,
          0x477f'efffu, 0x477f'f000u, 0x3880'0000u, 0x3300'0000u}) {
        CHECK(alike(0.0F, bits));
        CHECK(alike(float16{}, bits));
        CHECK(alike(bfloat16{}, bits));
    }
    CHECK(different<float>(300'000) == 0);
    CHECK(different<double>(20'000) == 0);
    CHECK(different<float16>(300'000) == 0);
    CHECK(different<bfloat16>(300'000) == 0);
    CHECK(different<std::int32_t>(1'000) == 0);
    CHECK(different<std::int64_t>(1'000) == 0);
}

TEST_CASE("fold_args: passed to a kernel by value") {
    CHECK(std::is_trivially_copyable_v<gpu::fold_args>);
    CHECK(sizeof(gpu::fold_args) <= 4096); // the limit of a kernel's parameters
}
