// herring: HKDF-SHA256: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_HKDF_IMPL_HPP
#define HERRING_CRYPTO_HKDF_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/hkdf.hpp"
#include "herring/crypto/hmac.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE secret_key hkdf_extract(std::span<std::byte const> salt,
                                          std::span<std::byte const> material) noexcept {
    sha256_digest digest = hmac_sha256(salt).update(material).finish();
    secret_key key(digest);
    erase(&digest, sizeof digest);
    return key;
}

HERRING_SEPARABLE void hkdf_expand(secret_key const& key,
                                   std::initializer_list<std::span<std::byte const>> info,
                                   std::span<std::byte> to) noexcept {
    assert(to.size() <= 255 * sizeof(sha256_digest));
    hmac_sha256 mac(key.bytes());
    sha256_digest part{};
    for (unsigned char number = 1; !to.empty(); ++number) {
        if (number > 1) mac.update(part);
        for (std::span<std::byte const> const piece : info) mac.update(piece);
        std::byte const counter{number};
        part = mac.update({&counter, 1}).finish();
        std::size_t const now = std::min(to.size(), part.size());
        std::copy_n(part.begin(), now, to.begin());
        to = to.subspan(now);
    }
    erase(&part, sizeof part);
}

HERRING_SEPARABLE secret_key hkdf_key(secret_key const& key, std::string_view label,
                                      std::span<std::byte const> context) noexcept {
    std::byte const zero{};
    secret_key derived;
    hkdf_expand(key, {bytes_of(label), {&zero, 1}, context}, derived.bytes());
    return derived;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_HKDF_IMPL_HPP
