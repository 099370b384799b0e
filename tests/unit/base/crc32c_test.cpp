// herring: CRC-32C against published values.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/crc32c.hpp"

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "doctest/doctest.h"

using herring::detail::crc32c;
using herring::detail::crc32c_by_table;

namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
    std::vector<std::byte> made(text.size());
    if (!text.empty()) std::memcpy(made.data(), text.data(), text.size());
    return made;
}

// The definition, a bit at a time.
std::uint32_t by_bits(std::span<std::byte const> data) {
    std::uint32_t crc = 0xffff'ffffu;
    for (std::byte const b : data) {
        crc ^= static_cast<std::uint32_t>(b);
        for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82f6'3b78u : 0u);
    }
    return ~crc;
}

constexpr std::byte zeros[32] = {};
static_assert(crc32c(zeros) == 0x8a91'36aau, "usable where the compiler computes");

} // namespace

TEST_CASE("known answers: RFC 3720, appendix B.4, and the check value of the catalogues") {
    std::vector<std::byte> data(32);
    CHECK(crc32c(data) == 0x8a91'36aau);
    CHECK(crc32c_by_table(data) == 0x8a91'36aau);
    data.assign(32, std::byte{0xff});
    CHECK(crc32c(data) == 0x62a8'ab43u);
    for (std::size_t i = 0; i < 32; ++i) data[i] = static_cast<std::byte>(i);
    CHECK(crc32c(data) == 0x46dd'794eu);
    for (std::size_t i = 0; i < 32; ++i) data[i] = static_cast<std::byte>(31 - i);
    CHECK(crc32c(data) == 0x113f'db5cu);
    CHECK(crc32c(bytes_of("123456789")) == 0xe306'9283u);
    CHECK(crc32c(bytes_of("")) == 0u);
}

TEST_CASE("any length, any alignment, in pieces") {
    std::mt19937 from(3);
    std::vector<std::byte> data(300);
    for (std::byte& b : data) b = static_cast<std::byte>(from());
    std::span<std::byte const> const all = data;
    for (std::size_t begin = 0; begin < 9; ++begin)
        for (std::size_t size = 0; size <= 64; ++size) {
            auto const part = all.subspan(begin, size);
            REQUIRE(crc32c(part) == by_bits(part));
            REQUIRE(crc32c_by_table(part) == by_bits(part));
        }
    for (std::size_t cut = 0; cut <= all.size(); ++cut)
        REQUIRE(crc32c(all.subspan(cut), crc32c(all.first(cut))) == by_bits(all));
}

TEST_CASE("one bit wrong is always seen") {
    std::mt19937 from(4);
    std::vector<std::byte> data(48);
    for (std::byte& b : data) b = static_cast<std::byte>(from());
    std::uint32_t const right = crc32c(data);
    for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
        data[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        REQUIRE(crc32c(data) != right);
        data[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
}
