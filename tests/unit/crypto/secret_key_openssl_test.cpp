// herring: what crypto/ computes beside what libcrypto computes, on random inputs. Only where OpenSSL is installed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/sha.h>

using namespace herring::detail;

namespace {

std::mt19937 from(std::random_device{}());

std::vector<std::byte> some_data(std::size_t most) {
    std::vector<std::byte> data(from() % (most + 1));
    for (std::byte& b : data) b = static_cast<std::byte>(from());
    return data;
}
unsigned char const* chars(std::vector<std::byte> const& data) {
    return reinterpret_cast<unsigned char const*>(data.data());
}
unsigned char* chars(std::vector<std::byte>& data) { return reinterpret_cast<unsigned char*>(data.data()); }

} // namespace

TEST_CASE("openssl: SHA-256 and HMAC of random data, in random pieces") {
    for (int turn = 0; turn < 2000; ++turn) {
        auto const key = some_data(150), data = some_data(turn % 10 == 0 ? 20'000 : 300);
        sha256 hash;
        hmac_sha256 mac(key);
        for (std::span<std::byte const> left = data; !left.empty();) {
            std::size_t const now = 1 + from() % left.size();
            hash.update(left.first(now));
            mac.update(left.first(now));
            left = left.subspan(now);
        }
        std::vector<std::byte> theirs(32);
        SHA256(chars(data), data.size(), chars(theirs));
        REQUIRE_MESSAGE(hex(hash.finish()) == hex(theirs), "data: ", hex(data));
        unsigned size = 0;
        unsigned char const none = 0; // a null pointer is no key to HMAC()
        HMAC(EVP_sha256(), key.empty() ? &none : chars(key), static_cast<int>(key.size()), chars(data),
             data.size(), chars(theirs), &size);
        REQUIRE_MESSAGE(hex(mac.finish()) == hex(theirs), "key: ", hex(key), " data: ", hex(data));
    }
}

TEST_CASE("openssl: HKDF") {
    for (int turn = 0; turn < 200; ++turn) {
        auto const material = some_data(100), salt = some_data(100), info = some_data(100);
        std::vector<std::byte> ours(1 + from() % (turn % 10 == 0 ? 255 * 32 : 200)), theirs(ours.size());
        hkdf_expand(hkdf_extract(salt, material), {info}, ours);
        if (material.empty()) continue; // which EVP refuses
        EVP_PKEY_CTX* const context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr);
        std::size_t size = theirs.size();
        REQUIRE(EVP_PKEY_derive_init(context) == 1);
        REQUIRE(EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1);
        if (!salt.empty()) // else there is none, which is the same
            REQUIRE(EVP_PKEY_CTX_set1_hkdf_salt(context, chars(salt), static_cast<int>(salt.size())) == 1);
        REQUIRE(EVP_PKEY_CTX_set1_hkdf_key(context, chars(material), static_cast<int>(material.size())) == 1);
        if (!info.empty())
            REQUIRE(EVP_PKEY_CTX_add1_hkdf_info(context, chars(info), static_cast<int>(info.size())) == 1);
        REQUIRE(EVP_PKEY_derive(context, chars(theirs), &size) == 1);
        EVP_PKEY_CTX_free(context);
        REQUIRE_MESSAGE(hex(ours) == hex(theirs), "material: ", hex(material), " salt: ", hex(salt),
                        " info: ", hex(info));
    }
}
