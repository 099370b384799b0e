// herring: tests of crypto/sha256.hpp: the values of RFC 4231, and of Project Wycheproof.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/sha256.hpp"

#include "doctest/doctest.h"
#include "herring/crypto/secret_key.hpp"
#include "unit/crypto/hex.hpp"
#include "unit/crypto/memory_of_process.hpp"
#include "unit/crypto/wycheproof.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using herring::detail::bytes_of;
using herring::detail::equal_in_constant_time;
using herring::detail::hmac_sha256;

namespace {

std::vector<std::byte> repeated(unsigned byte, std::size_t size) {
    return {size, static_cast<std::byte>(byte)};
}

std::string mac_of(std::vector<std::byte> const& key, std::span<std::byte const> data) {
    return hex(hmac_sha256(key).update(data).finish());
}

} // namespace

TEST_CASE("hmac: the test cases of RFC 4231") {
    CHECK(mac_of(repeated(0x0b, 20), bytes_of("Hi There")) ==
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK(mac_of(from_hex("4a656665"), bytes_of("what do ya want for nothing?")) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(mac_of(repeated(0xaa, 20), repeated(0xdd, 50)) ==
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    CHECK(mac_of(counted(1, 25), repeated(0xcd, 50)) ==
          "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    CHECK(mac_of(repeated(0x0c, 20), bytes_of("Test With Truncation")).substr(0, 32) ==
          "a3b6167473100ee06e0c796c2955552b");
    CHECK(mac_of(repeated(0xaa, 131), bytes_of("Test Using Larger Than Block-Size Key - Hash Key First")) ==
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    CHECK(mac_of(
              repeated(0xaa, 131),
              bytes_of("This is a test using a larger than block-size key and a larger than block-size data. "
                       "The key needs to be hashed before being used by the HMAC algorithm.")) ==
          "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST_CASE("hmac: of Wycheproof's vectors, whole tags and cut ones, those that are valid and no other") {
    for (wycheproof::mac const& each : wycheproof::hmac_sha256) {
        CAPTURE(each.id);
        std::vector<std::byte> const tag = from_hex(each.tag);
        REQUIRE(tag.size() >= 16);
        auto const whole = hmac_sha256(from_hex(each.key)).update(from_hex(each.message)).finish();
        CHECK(equal_in_constant_time(std::span(whole).first(tag.size()), tag) == each.valid);
    }
}

TEST_CASE("hmac: one object takes message after message, each in pieces") {
    hmac_sha256 mac(repeated(0x0b, 20));
    for (int turn = 0; turn < 3; ++turn) {
        CHECK(hex(mac.update(bytes_of("Hi")).update(bytes_of("")).update(bytes_of(" There")).finish()) ==
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        CHECK(hex(mac.finish()) == hex(hmac_sha256(repeated(0x0b, 20)).finish()));
    }
}

TEST_CASE("hmac: a key of a block is taken as it is, one byte more is hashed, zeroes behind a shorter one "
          "are nothing") {
    auto const message = bytes_of("m");
    CHECK(mac_of(repeated(1, 64), message) != mac_of(repeated(1, 65), message));
    auto padded = repeated(1, 20);
    padded.resize(64);
    CHECK(mac_of(repeated(1, 20), message) == mac_of(padded, message));
    padded.resize(65);
    CHECK(mac_of(repeated(1, 20), message) != mac_of(padded, message));
}

TEST_CASE("hmac: the digest of the inner hash is not left on the stack") {
    std::vector<std::byte> const key = counted(1, 32), message = counted(50, 32);
    // As RFC 2104 has it, masked: SHA-256 of the key, xor 0x36, and the message.
    std::vector<std::byte> inner(64, std::byte{0x36});
    for (std::size_t i = 0; i < key.size(); ++i) inner[i] ^= key[i];
    herring::detail::sha256_digest masked = herring::detail::sha256().update(inner).update(message).finish();
    for (std::byte& b : masked) b ^= mask_of_needle;
    hmac_sha256 mac(key);
    herring::detail::sha256_digest all{};
    bool left = true;
    for (int i = 0; i < 2; ++i) { // the loader has bound all calls when the second begins
        clear_stack();
        far_below([&] { all = mac.update(message).finish(); });
        left = are_left_on_stack(masked);
    }
    CHECK_FALSE(left);
    CHECK(hex(all) == mac_of(key, message));
}
