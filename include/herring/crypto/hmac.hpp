// herring: HMAC-SHA256: a digest that only who has the key can make.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_HMAC_HPP
#define HERRING_CRYPTO_HMAC_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// HMAC-SHA256 under one key, of any number of messages, each in pieces.
///
/// Cost:    construction two blocks, a message two more than SHA-256 of it: 0.2 us for 128 bytes, 1.8 GB/s for 64 KiB with SHA
///          instructions, else 0.8 us and 0.4 GB/s (bench/kernel_bench.cpp).
/// Lifetime: erases what follows from the key; the key itself is not kept.
/// Source:  RFC 2104.
class hmac_sha256 {
  public:
    /// A key of up to 64 bytes is taken as if zeroes followed it, a longer one is hashed first.
    HERRING_SEPARABLE explicit hmac_sha256(std::span<std::byte const> key) noexcept;
    ~hmac_sha256() {
        erase(&inner_, sizeof inner_);
        erase(&outer_, sizeof outer_);
    }

    hmac_sha256& update(std::span<std::byte const> data) noexcept {
        running_.update(data);
        return *this;
    }
    /// Of all that was given since the one before; the next message may follow.
    HERRING_SEPARABLE sha256_digest finish() noexcept;

    /// The states that the key's two blocks lead to.
    sha256_state const& inner() const noexcept { return inner_; }
    sha256_state const& outer() const noexcept { return outer_; }

  private:
    sha256_state inner_ = sha256_start;
    sha256_state outer_ = sha256_start;
    sha256 running_;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/hmac.hpp"
#endif

#endif // HERRING_CRYPTO_HMAC_HPP
