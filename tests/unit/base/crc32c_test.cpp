// herring: CRC-32C against published values.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/crc32c.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "doctest/doctest.h"

using herring::detail::crc32c;
using herring::detail::crc32c_by_hardware;
using herring::detail::crc32c_by_table;
using herring::detail::crc32c_copy;

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

TEST_CASE("any length, any alignment, in pieces; a copy too, to any alignment, and no byte beside it") {
    std::mt19937 from(3);
    std::vector<std::byte> data(320), copy(350);
    for (std::byte& b : data) b = static_cast<std::byte>(from());
    std::span<std::byte const> const all = data;
    for (std::size_t begin = 0; begin < 17; ++begin)
        for (std::size_t size = 0; size <= 300; ++size) {
            auto const part = all.subspan(begin, size);
            std::uint32_t const right = by_bits(part);
            REQUIRE(crc32c(part) == right);
            REQUIRE(crc32c_by_table(part) == right);
            std::size_t const at = 1 + (begin * 5 + size) % 16;
            std::fill(copy.begin(), copy.end(), std::byte{0x5a});
            REQUIRE(crc32c_copy(copy.data() + at, part) == right);
            REQUIRE(std::equal(part.begin(), part.end(), copy.begin() + static_cast<std::ptrdiff_t>(at)));
            REQUIRE(copy[at - 1] == std::byte{0x5a});
            REQUIRE(copy[at + size] == std::byte{0x5a});
        }
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
        REQUIRE(crc32c(all.subspan(cut), crc32c(all.first(cut))) == by_bits(all));
        REQUIRE(crc32c_copy(copy.data(), all.subspan(cut), crc32c(all.first(cut))) == by_bits(all));
    }
}

TEST_CASE("where the lanes of the instruction begin and end") {
    std::mt19937 from(5);
    std::vector<std::byte> data(40'000), copy(data.size());
    for (std::byte& b : data) b = static_cast<std::byte>(from());
    std::span<std::byte const> const all = data;
    for (std::size_t const lanes : {192u, 1536u, 12288u, 12288u + 1536u + 192u, 2 * 12288u})
        for (std::size_t const size : {lanes - 1, lanes, lanes + 1, lanes + 9}) {
            auto const part = all.subspan(size % 8, size);
            std::uint32_t const right = by_bits(part);
            CHECK(crc32c(part) == right);
            CHECK(crc32c_by_table(part) == right);
            CHECK(crc32c(part.subspan(1000 % size), crc32c(part.first(1000 % size))) == right);
            CHECK(crc32c_copy(copy.data(), part) == right);
            CHECK(std::equal(part.begin(), part.end(), copy.begin()));
        }
    if (!crc32c_by_hardware()) MESSAGE("this processor has no instruction for CRC-32C: by table only");
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
