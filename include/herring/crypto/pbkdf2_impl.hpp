// herring: PBKDF2-HMAC-SHA256: the function.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_PBKDF2_IMPL_HPP
#define HERRING_CRYPTO_PBKDF2_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/hmac.hpp"
#include "herring/crypto/pbkdf2.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void pbkdf2_sha256(std::span<std::byte const> password, std::span<std::byte const> salt,
                                     std::uint32_t rounds, std::span<std::byte> to) noexcept {
    hmac_sha256 mac(password);
    // The one block that either hash of a round takes behind the key's: a digest, and what SHA-256 has at the end of 96 bytes.
    std::array<std::byte, sha256_block_bytes> block{};
    block[32] = std::byte{0x80};
    block[62] = std::byte{0x03}; // 768 bits
    sha256_digest last{}, total{};
    sha256_state state{};
    for (std::uint32_t number = 1; !to.empty(); ++number) {
        std::array<std::byte, 4> place;
        for (std::size_t i = 0; i < 4; ++i) place[i] = static_cast<std::byte>(number >> (24 - 8 * i));
        total = last = mac.update(salt).update(place).finish();
        for (std::uint32_t round = 1; round < rounds; ++round) {
            for (sha256_state const* const key : {&mac.inner(), &mac.outer()}) {
                std::copy(last.begin(), last.end(), block.begin());
                state = *key;
                sha256_blocks(state, block.data(), 1);
                last = sha256_bytes_of(state);
            }
            for (std::size_t i = 0; i < total.size(); ++i) total[i] ^= last[i];
        }
        std::size_t const now = std::min(to.size(), total.size());
        std::copy_n(total.begin(), now, to.begin());
        to = to.subspan(now);
    }
    for (auto* const left : {block.data(), last.data(), total.data()}) erase(left, 32);
    erase(&state, sizeof state);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_PBKDF2_IMPL_HPP
