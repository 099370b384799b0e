// herring: tests of transport/tcp/frame.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/frame.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <limits>
#include <random>

using herring::detail::decode;
using herring::detail::encode;
using herring::detail::frame;
using herring::detail::frame_buffer;
using herring::detail::frame_bytes;

namespace {
bool same(frame const& a, frame const& b) {
    return a.job == b.job && a.epoch == b.epoch && a.incarnation == b.incarnation && a.tag == b.tag &&
           a.length == b.length && a.source == b.source && a.envelope == b.envelope;
}
} // namespace

TEST_CASE("frame: what is encoded is decoded") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; ++i) {
        frame const out{random(),
                        static_cast<std::uint32_t>(random()),
                        static_cast<std::uint32_t>(random()),
                        random(),
                        random(),
                        static_cast<std::uint32_t>(random()),
                        static_cast<std::uint32_t>(random() % 33)};
        frame_buffer bytes;
        encode(out, bytes.data());
        frame in;
        REQUIRE(decode(bytes, in));
        CHECK(same(in, out));
    }
    frame const most{.length = std::numeric_limits<std::uint64_t>::max()};
    frame_buffer bytes;
    encode(most, bytes.data());
    frame in;
    CHECK((decode(bytes, in) && same(in, most)));
}

TEST_CASE("frame: the bytes on the wire do not depend on the host, nor do they change between versions") {
    frame_buffer bytes;
    encode({.job = 0x0807060504030201,
            .epoch = 0x14131211,
            .incarnation = 0x24232221,
            .tag = 0x3837363534333231,
            .length = 0x4847464544434241,
            .source = 0x54535251},
           bytes.data());
    unsigned char const expected[frame_bytes] = {
        'H',  'R',  'G',  '1',  0,    0,    0,    0, // the checksum is looked at below
        1,    2,    3,    4,    5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, //
        0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, //
        0x51, 0x52, 0x53, 0x54, 0,    0,    0,    0};
    for (std::size_t i = 0; i < frame_bytes; ++i)
        if (i < 4 || i >= 8) CHECK(std::to_integer<unsigned char>(bytes[i]) == expected[i]);
    CHECK(herring::detail::get<std::uint32_t>(bytes.data() + 4) ==
          herring::detail::crc32c(std::span<std::byte const>(bytes).subspan(8)));
}

TEST_CASE("frame: an envelope is announced where zeroes are without one; more than 32 bytes are no frame") {
    frame_buffer bytes;
    encode({.tag = 1, .length = 5, .envelope = 32}, bytes.data());
    CHECK(std::to_integer<int>(bytes[44]) == 32);
    frame in;
    CHECK(decode(bytes, in));
    CHECK(in.envelope == 32);
    encode({.tag = 1, .length = 5, .envelope = 33}, bytes.data());
    CHECK_FALSE(decode(bytes, in));
}

TEST_CASE("frame: any changed bit is seen") {
    frame_buffer bytes;
    encode({.job = 77, .epoch = 1, .incarnation = 4711, .tag = 12, .length = 65536, .source = 3},
           bytes.data());
    frame in;
    REQUIRE(decode(bytes, in));
    for (std::size_t i = 0; i < frame_bytes; ++i)
        for (int bit = 0; bit < 8; ++bit) {
            bytes[i] ^= static_cast<std::byte>(1 << bit);
            CHECK_FALSE(decode(bytes, in));
            bytes[i] ^= static_cast<std::byte>(1 << bit);
        }
    CHECK(decode(bytes, in));
    frame_buffer const zeros{};
    CHECK_FALSE(decode(zeros, in));
    frame_buffer ones;
    ones.fill(std::byte{0xff});
    CHECK_FALSE(decode(ones, in));
}

TEST_CASE("frame: put and get, little-endian, at compile time") {
    constexpr bool fine = [] {
        std::byte bytes[8]{};
        herring::detail::put(bytes, std::uint32_t{0x04030201});
        return bytes[0] == std::byte{1} && bytes[3] == std::byte{4} && bytes[4] == std::byte{0} &&
               herring::detail::get<std::uint32_t>(bytes) == 0x04030201 &&
               herring::detail::get<std::uint64_t>(bytes) == 0x04030201;
    }();
    static_assert(fine);
}
