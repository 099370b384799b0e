// herring: PBKDF2-HMAC-SHA256: a key from a text that somebody may guess, at a price for each guess.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_PBKDF2_HPP
#define HERRING_CRYPTO_PBKDF2_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Fills `to` from a password and a salt.
///
/// Cost:    two blocks of SHA-256 a round: 600,000 rounds take 0.07 s with SHA instructions, else 0.2 (bench/kernel_bench.cpp).
/// Source:  RFC 8018, 5.2.
HERRING_SEPARABLE void pbkdf2_sha256(std::span<std::byte const> password, std::span<std::byte const> salt,
                                     std::uint32_t rounds, std::span<std::byte> to) noexcept;

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/crypto/pbkdf2_impl.hpp"
#endif

#endif // HERRING_CRYPTO_PBKDF2_HPP
