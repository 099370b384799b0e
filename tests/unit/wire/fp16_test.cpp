// herring: tests of wire/codecs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/codecs.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "doctest/doctest.h"

namespace fp16_test {

using herring::wire::fp16;
static_assert(std::is_empty_v<fp16> && !fp16::facts.exact && fp16::bytes<float>(10) == 20);
static_assert(herring::wire_supports<fp16, herring::bfloat16> && !herring::wire_supports<fp16, double>);

TEST_CASE("fp16: every value of 16 bits comes back, in vectors and at the end of a row") {
    std::vector<float> row;
    for (unsigned bits = 0; bits < 0x1'0000; ++bits)
        if ((bits & 0x7fff) <= 0x7c00)
            row.push_back(
                static_cast<float>(__builtin_bit_cast(herring::float16, static_cast<std::uint16_t>(bits))));
    std::vector<std::byte> bytes(fp16::bytes<float>(row.size()));
    std::vector<float> back(row.size());
    fp16::encode<float>(row, bytes);
    fp16::decode<float>(bytes, back);
    CHECK(std::memcmp(row.data(), back.data(), row.size() * sizeof(float)) == 0);
}

TEST_CASE("fp16: one by one, numbers have the bits that they have in a row") {
    std::vector<float> row(1000);
    std::uint32_t seed = 5;
    for (float& x : row) {
        seed = seed * 1664525u + 1013904223u;
        x = std::ldexp(static_cast<float>(static_cast<std::int32_t>(seed)),
                       -20 - static_cast<int>(seed % 29));
    }
    std::vector<std::byte> bytes(fp16::bytes<float>(row.size())), one(2);
    fp16::encode<float>(row, bytes);
    for (std::size_t i = 0; i < row.size(); ++i) {
        fp16::encode<float>(std::span<float const>(row).subspan(i, 1), one);
        CHECK(std::memcmp(one.data(), bytes.data() + 2 * i, 2) == 0);
    }
}

TEST_CASE("fp16: the largest number is one") {
    std::vector<float> const row{fp16::facts.largest, -fp16::facts.largest, fp16::facts.one};
    std::vector<std::byte> bytes(fp16::bytes<float>(3));
    std::vector<float> back(3);
    fp16::encode<float>(row, bytes);
    fp16::decode<float>(bytes, back);
    CHECK(row == back);
}

} // namespace fp16_test
