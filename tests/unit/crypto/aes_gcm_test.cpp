// herring: tests of crypto/aes_gcm.hpp, against published values.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/aes_gcm.hpp"

#include "herring/crypto/secret_key.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

using herring::detail::aes_gcm;
using herring::detail::secret_key;

namespace {
secret_key key_of(char const* digits) {
    std::vector<std::byte> const bytes = from_hex(digits);
    secret_key made;
    std::copy(bytes.begin(), bytes.end(), made.bytes().begin());
    return made;
}
aes_gcm::nonce nonce_of(char const* digits) {
    std::vector<std::byte> const bytes = from_hex(digits);
    aes_gcm::nonce made;
    std::copy(bytes.begin(), bytes.end(), made.begin());
    return made;
}
} // namespace

// McGrew, Viega: The Galois/Counter Mode of Operation, test cases 14 and 16.
TEST_CASE("aes_gcm: published values") {
    aes_gcm none(aes_gcm::does::seal, key_of(std::string(64, '0').c_str()), 0);
    std::array<std::byte, 16> tag{};
    std::vector<std::byte> data(16);
    REQUIRE(none.seal(aes_gcm::nonce{}, {}, data, data.data(), tag.data()));
    CHECK(hex(data) == "cea7403d4d606b6e074ec5d3baf39d18");
    CHECK(hex(tag) == "d0d1c8a799996bf0265b98b5d48ab919");

    aes_gcm seals(aes_gcm::does::seal,
                  key_of("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"), 0);
    std::vector<std::byte> const plain =
        from_hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                 "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
    std::vector<std::byte> const beside = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    std::vector<std::byte> sealed(plain.size());
    REQUIRE(seals.seal(nonce_of("cafebabefacedbaddecaf888"), beside, plain, sealed.data(), tag.data()));
    CHECK(hex(sealed) == "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                         "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662");
    CHECK(hex(tag) == "76fc6ece0f4e1768cddf8853bb2d551b");
}

TEST_CASE("aes_gcm: what was sealed opens, message after message; anything else does not") {
    secret_key const key = key_of("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    aes_gcm seals(aes_gcm::does::seal, key, 0), opens(aes_gcm::does::open, key, 0);
    std::array<std::byte, 36> beside{};
    for (std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{1000}, std::size_t{70'000}}) {
        std::vector<std::byte> plain(length), sealed(length);
        for (std::size_t i = 0; i < length; ++i) plain[i] = static_cast<std::byte>(i * 7);
        std::array<std::byte, 16> tag{};
        aes_gcm::nonce once{};
        once[0] = static_cast<std::byte>(length);
        REQUIRE(seals.seal(once, beside, plain, sealed.data(), tag.data()));
        if (length > 16) CHECK(sealed != plain);
        auto const opened = [&](auto&& change) {
            auto data = sealed;
            auto with = once;
            auto of = beside;
            auto mark = tag;
            change(data, with, of, mark);
            return opens.open(with, of, data, mark.data()) && data == plain;
        };
        CHECK(opened([](auto&, auto&, auto&, auto&) {}));
        CHECK_FALSE(opened([](auto&, auto& with, auto&, auto&) { with[11] ^= std::byte{1}; }));
        CHECK_FALSE(opened([](auto&, auto&, auto& of, auto&) { of[35] ^= std::byte{1}; }));
        CHECK_FALSE(opened([](auto&, auto&, auto&, auto& mark) { mark[15] ^= std::byte{128}; }));
        if (length > 0) {
            CHECK_FALSE(opened([](auto& data, auto&, auto&, auto&) { data.back() ^= std::byte{1}; }));
            CHECK_FALSE(opened([](auto& data, auto&, auto&, auto&) { data.pop_back(); }));
        }
        CHECK(opened([](auto&, auto&, auto&, auto&) {})); // what did not open leaves nothing behind
    }
}

TEST_CASE("aes_gcm: another key, and back; a context that is moved") {
    secret_key const one = key_of("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    secret_key const two = key_of("00ffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    aes_gcm seals(aes_gcm::does::seal, one, 0), opens(aes_gcm::does::open, two, 0);
    std::vector<std::byte> data(100), tag(16);
    REQUIRE(seals.seal({}, {}, data, data.data(), tag.data()));
    std::vector<std::byte> again = data;
    CHECK_FALSE(opens.open({}, {}, again, tag.data()));
    REQUIRE(opens.take(one));
    aes_gcm moved(std::move(opens));
    CHECK(moved.open({}, {}, data, tag.data()));
    CHECK(data == std::vector<std::byte>(100));
}
