// herring: tests of base/bytes.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/bytes.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

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
