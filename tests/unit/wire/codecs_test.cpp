// herring: tests of wire/codecs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/codecs.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace as_is_test {

using herring::wire::as_is;
static_assert(std::is_empty_v<as_is> && as_is::facts.exact && as_is::name == std::string_view("as_is"));
static_assert(as_is::bytes<double>(10) == 80 && as_is::bytes<herring::bfloat16>(10) == 20);
static_assert(!herring::wire_supports<as_is, int>);

TEST_CASE("as_is: every bit comes back, but those of a NaN") {
    std::vector<float> const row{
        0.0f, -0.0f, 1e-45f, 3.4e38f, -1.5f, 7, std::numeric_limits<float>::infinity()};
    std::vector<std::byte> bytes(as_is::bytes<float>(row.size()));
    std::vector<float> back(row.size());
    as_is::encode<float>(row, bytes);
    as_is::decode<float>(bytes, back);
    CHECK(std::memcmp(row.data(), back.data(), bytes.size()) == 0);
}

} // namespace as_is_test

namespace sixteen_bits_test {

using herring::wire::bf16;
using herring::wire::fp16;
static_assert(std::is_empty_v<bf16> && !bf16::facts.exact && bf16::bytes<float>(10) == 20);
static_assert(std::is_empty_v<fp16> && !fp16::facts.exact && fp16::bytes<float>(10) == 20);
static_assert(herring::wire_supports<bf16, herring::bfloat16> && !herring::wire_supports<bf16, double>);
static_assert(herring::wire_supports<fp16, herring::bfloat16> && !herring::wire_supports<fp16, double>);

struct bf16_values {
    using codec = bf16;
    using element = herring::bfloat16;
    static constexpr unsigned infinity = 0x7f80;
};
struct fp16_values {
    using codec = fp16;
    using element = herring::float16;
    static constexpr unsigned infinity = 0x7c00;
};

TEST_CASE_TEMPLATE("bf16, fp16: every value of 16 bits comes back, in vectors and at the end of a row", T,
                   bf16_values, fp16_values) {
    using codec = typename T::codec;
    std::vector<float> row;
    for (unsigned bits = 0; bits < 0x1'0000; ++bits)
        if ((bits & 0x7fff) <= T::infinity)
            row.push_back(static_cast<float>(
                __builtin_bit_cast(typename T::element, static_cast<std::uint16_t>(bits))));
    std::vector<std::byte> bytes(codec::template bytes<float>(row.size()));
    std::vector<float> back(row.size());
    codec::template encode<float>(row, bytes);
    codec::template decode<float>(bytes, back);
    CHECK(std::memcmp(row.data(), back.data(), row.size() * sizeof(float)) == 0);
}

TEST_CASE_TEMPLATE("bf16, fp16: one by one, numbers have the bits that they have in a row", codec, bf16,
                   fp16) {
    std::vector<float> row(1000);
    std::uint32_t seed = 5;
    for (float& x : row) {
        seed = seed * 1664525u + 1013904223u;
        x = std::ldexp(static_cast<float>(static_cast<std::int32_t>(seed)),
                       -20 - static_cast<int>(seed % 29));
    }
    std::vector<std::byte> bytes(codec::template bytes<float>(row.size())), one(2);
    codec::template encode<float>(row, bytes);
    for (std::size_t i = 0; i < row.size(); ++i) {
        codec::template encode<float>(std::span<float const>(row).subspan(i, 1), one);
        CHECK(std::memcmp(one.data(), bytes.data() + 2 * i, 2) == 0);
    }
}

TEST_CASE_TEMPLATE("bf16, fp16: the largest number is one", codec, bf16, fp16) {
    std::vector<float> const row{codec::facts.largest, -codec::facts.largest, codec::facts.one};
    std::vector<std::byte> bytes(codec::template bytes<float>(3));
    std::vector<float> back(3);
    codec::template encode<float>(row, bytes);
    codec::template decode<float>(bytes, back);
    CHECK(row == back);
}

} // namespace sixteen_bits_test

namespace lanes_of_test {

template <class> struct as_double { using type = double; };
using lanes = herring::wire::lanes_of<as_double>; // of rows of doubles only
static_assert(lanes::supports<double> && !lanes::supports<float> && lanes::bytes<double>(3) == 24);

TEST_CASE("lanes_of: at any alignment, a NaN as the canonical one") {
    std::vector<double> row(21);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<double>(i) - 5;
    row[3] = -std::numeric_limits<double>::quiet_NaN();
    std::vector<std::byte> bytes(lanes::bytes<double>(21) + 1);
    std::vector<double> back(21);
    lanes::encode<double>(row, std::span(bytes).subspan(1));
    lanes::decode<double>(std::span<std::byte const>(bytes).subspan(1), back);
    for (std::size_t i = 0; i < row.size(); ++i) CHECK((i == 3 ? back[i] != back[i] : back[i] == row[i]));
}

} // namespace lanes_of_test

namespace decision_test {

using herring::wire::decision;
static_assert(decision<herring::wire::argmax>::name == std::string_view("decision<argmax>"));
static_assert(decision<>::facts.entries && decision<>::count(1000) == 1 && decision<>::count(0) == 0);

} // namespace decision_test

namespace top_k_test {

using herring::wire::top_k;
static_assert(top_k<64>::name == std::string_view("top_k<64>") &&
              top_k<1024>::name == std::string_view("top_k<1024>"));
static_assert(top_k<64>::facts.entries && top_k<64>::count(1000) == 64 && top_k<64>::count(3) == 3);
static_assert(herring::wire_supports<top_k<64>, herring::bfloat16> &&
              !herring::wire_supports<top_k<64>, double>);

} // namespace top_k_test
