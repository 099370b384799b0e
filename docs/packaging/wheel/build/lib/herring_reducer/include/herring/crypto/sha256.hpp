// herring: SHA-256 of data in pieces, and HMAC and HKDF by it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SHA256_HPP
#define HERRING_CRYPTO_SHA256_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

using sha256_digest = std::array<std::byte, 32>;
using sha256_state = std::array<std::uint32_t, 8>;

inline constexpr std::size_t sha256_block_bytes = 64;
inline constexpr sha256_state sha256_start = {0x6a09'e667, 0xbb67'ae85, 0x3c6e'f372, 0xa54f'f53a,
                                              0x510e'527f, 0x9b05'688c, 0x1f83'd9ab, 0x5be0'cd19};

/// Adds `count` blocks of 64 bytes to the state.
HERRING_SEPARABLE void sha256_blocks(sha256_state& state, std::byte const* blocks,
                                     std::size_t count) noexcept;

/// SHA-256 of data in pieces; the digest does not depend on how the data was cut.
///
/// Cost:    0.3 GB/s; allocates nothing (bench/kernel_bench.cpp).
/// Lifetime: erases its copy of the data.
/// Source:  FIPS 180-4.
class sha256 {
  public:
    sha256() noexcept = default;
    /// Continues from the state after `bytes` bytes, a multiple of a block.
    sha256(sha256_state const& state, std::uint64_t bytes) noexcept : state_(state), bytes_(bytes) {}
    sha256(sha256 const&) noexcept = default;
    sha256& operator=(sha256 const&) noexcept = default;
    ~sha256() {
        erase(&state_, sizeof state_);
        erase(&held_, sizeof held_);
    }

    HERRING_SEPARABLE sha256& update(std::span<std::byte const> data) noexcept;
    /// Returns the digest of all data. Only an assignment may follow.
    HERRING_SEPARABLE sha256_digest finish() noexcept;

  private:
    sha256_state state_ = sha256_start;
    std::array<std::byte, sha256_block_bytes> held_{}; // the last bytes_ % 64 bytes
    std::uint64_t bytes_ = 0;
};

/// HMAC-SHA256 under one key, for any number of messages, each in pieces.
///
/// Cost:    construction: two blocks; a message: two blocks more than its SHA-256; 0.9 us for 128 bytes, 0.3
///          GB/s for 64 KiB (bench/kernel_bench.cpp).
/// Lifetime: erases what was derived from the key; does not keep the key itself.
/// Source:  RFC 2104.
class hmac_sha256 {
  public:
    /// A key of up to 64 bytes is padded with zeroes; a longer one is hashed first.
    HERRING_SEPARABLE explicit hmac_sha256(std::span<std::byte const> key) noexcept;

    hmac_sha256& update(std::span<std::byte const> data) noexcept {
        running_.update(data);
        return *this;
    }
    /// Returns the code of all data since the previous finish(); the next message may follow.
    HERRING_SEPARABLE sha256_digest finish() noexcept;

    /// The states after the inner and the outer block of the key.
    sha256_state const& inner() const noexcept { return (*states_)[0]; }
    sha256_state const& outer() const noexcept { return (*states_)[1]; }

  private:
    key_place<std::array<sha256_state, 2>> states_;
    sha256 running_;
};

/// Returns a key from secret material that is not uniformly random, or that must not be used itself.
///
/// Source:  RFC 5869, 2.2.
HERRING_SEPARABLE secret_key hkdf_extract(std::span<std::byte const> salt,
                                          std::span<std::byte const> material) noexcept;

/// Fills `to`, at most 8,160 bytes, from a key and from `info`, the concatenation of its pieces.
///
/// Source:  RFC 5869, 2.3.
HERRING_SEPARABLE void hkdf_expand(secret_key const& key,
                                   std::initializer_list<std::span<std::byte const>> info,
                                   std::span<std::byte> to) noexcept;

/// Derives the key of a label and a context; keys of other labels or contexts reveal nothing about it. The
/// info is the label, a zero byte and the context: a label has no zero byte, so no two pairs have one info.
HERRING_SEPARABLE secret_key hkdf_key(secret_key const& key, std::string_view label,
                                      std::span<std::byte const> context = {}) noexcept;

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/crypto/sha256_impl.hpp"
#endif

#endif // HERRING_CRYPTO_SHA256_HPP
