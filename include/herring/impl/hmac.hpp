// herring: HMAC-SHA256: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_HMAC_HPP
#define HERRING_IMPL_HMAC_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/hmac.hpp"
#include "herring/crypto/secret_key.hpp"
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
    sha256_blocks(inner_, block.data(), 1);
    for (std::byte& b : block) b ^= std::byte{0x36 ^ 0x5c};
    sha256_blocks(outer_, block.data(), 1);
    running_ = sha256(inner_, sha256_block_bytes);
    erase(&block, sizeof block);
    erase(&digest, sizeof digest);
}

HERRING_SEPARABLE sha256_digest hmac_sha256::finish() noexcept {
    sha256_digest const inside = running_.finish();
    running_ = sha256(inner_, sha256_block_bytes);
    return sha256(outer_, sha256_block_bytes).update(inside).finish();
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_HMAC_HPP
