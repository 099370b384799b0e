// herring: HMAC-SHA256: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_HMAC_IMPL_HPP
#define HERRING_CRYPTO_HMAC_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/hmac.hpp"
#include "herring/crypto/key_place.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE hmac_sha256::hmac_sha256(std::span<std::byte const> key) noexcept {
    std::array<std::byte, sha256_block_bytes> block{};
    sha256_digest digest{};
    if (key.size() > block.size()) {
        digest = sha256().update(key).finish();
        key = digest;
    }
    std::copy(key.begin(), key.end(), block.begin());
    for (std::byte& b : block) b ^= std::byte{0x36};
    auto& [inner, outer] = *states_;
    inner = outer = sha256_start;
    sha256_blocks(inner, block.data(), 1);
    for (std::byte& b : block) b ^= std::byte{0x36 ^ 0x5c};
    sha256_blocks(outer, block.data(), 1);
    running_ = sha256(inner, sha256_block_bytes);
    erase(&block, sizeof block);
    erase(&digest, sizeof digest);
}

HERRING_SEPARABLE sha256_digest hmac_sha256::finish() noexcept {
    sha256_digest inside = running_.finish();
    running_ = sha256(inner(), sha256_block_bytes);
    sha256_digest const all = sha256(outer(), sha256_block_bytes).update(inside).finish();
    erase(&inside, sizeof inside);
    return all;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_HMAC_IMPL_HPP
