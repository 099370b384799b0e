// herring: tests of base/bytes.hpp: units, rounding, and integers as bytes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/bytes.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

TEST_CASE("units: powers of 1024, as std::size_t, at compile time") {
    using namespace herring::literals;
    static_assert(1_KiB == 1024 && 3_MiB == 3 * 1024 * 1024 && 2_GiB == std::size_t{1} << 31);
    static_assert(0_KiB == 0 && 5_GiB == std::size_t{5} << 30);
    static_assert(std::is_same_v<decltype(1_KiB), std::size_t>);
    CHECK(25_MiB == 26'214'400);
}

using herring::detail::divide_up;
using herring::detail::round_up;

TEST_CASE("round_up: to the next multiple, and no further") {
    CHECK(divide_up(0, 7) == 0);
    CHECK(divide_up(1, 7) == 1);
    CHECK(divide_up(7, 7) == 1);
    CHECK(divide_up(8, 7) == 2);
    CHECK(round_up(0, 64) == 0);
    CHECK(round_up(1, 64) == 64);
    CHECK(round_up(64, 64) == 64);
    CHECK(round_up(65, 64) == 128);
    CHECK(round_up(10, 3) == 12);
    static_assert(round_up(4097, 4096) == 8192);
}

using herring::detail::get;
using herring::detail::put;

namespace {

constexpr bool in_a_constant() {
    std::array<std::byte, 4> bytes{};
    put(bytes.data(), std::uint32_t{0x12345678});
    return bytes[0] == std::byte{0x78} && get<std::uint32_t>(bytes.data()) == 0x12345678;
}
static_assert(in_a_constant());

} // namespace

TEST_CASE("little_endian: the lowest byte comes first, and no other byte is written") {
    std::array<std::byte, 10> bytes;
    bytes.fill(std::byte{0xee});
    put(bytes.data() + 1, std::uint64_t{0x0123456789abcdef}); // not aligned
    std::array<unsigned, 10> const expected{0xee, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0xee};
    for (std::size_t i = 0; i < bytes.size(); ++i) CHECK(std::to_integer<unsigned>(bytes[i]) == expected[i]);
    CHECK(get<std::uint64_t>(bytes.data() + 1) == 0x0123456789abcdef);
    CHECK(get<std::uint32_t>(bytes.data() + 3) == 0x456789ab);
    CHECK(get<std::uint16_t>(bytes.data() + 7) == 0x0123);
    CHECK(get<std::uint8_t>(bytes.data() + 1) == 0xef);
}

TEST_CASE("little_endian: the largest values come back") {
    std::array<std::byte, 8> bytes{};
    put(bytes.data(), std::numeric_limits<std::uint64_t>::max());
    CHECK(get<std::uint64_t>(bytes.data()) == std::numeric_limits<std::uint64_t>::max());
    put(bytes.data(), std::uint16_t{0xfffe});
    CHECK(get<std::uint16_t>(bytes.data()) == 0xfffe);
    CHECK(get<std::uint32_t>(bytes.data()) == 0xffff'fffe);
}
