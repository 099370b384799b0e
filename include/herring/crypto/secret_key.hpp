// herring: a key of 32 bytes, which no core dump has and which is erased when it is not needed any more; and comparison in constant time.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SECRET_KEY_HPP
#define HERRING_CRYPTO_SECRET_KEY_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/key_place.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Whether both are equal, in a time that depends on their sizes only.
inline bool equal_in_constant_time(std::span<std::byte const> a, std::span<std::byte const> b) noexcept {
    if (a.size() != b.size()) return false;
    unsigned char differs = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        differs = static_cast<unsigned char>(differs | static_cast<unsigned char>(a[i] ^ b[i]));
        asm("" : "+r"(differs)); // the compiler knows nothing of it, so it cannot stop early
    }
    return differs == 0;
}

/// The bytes of a text.
inline std::span<std::byte const> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span<char const>(text.data(), text.size()));
}

/// 32 bytes that nobody else may know, kept out of core dumps.
///
/// Lifetime: moves, and erases what it leaves; there is no copy.
class secret_key {
  public:
    static constexpr std::size_t size = 32;

    secret_key() noexcept = default;
    explicit secret_key(std::span<std::byte const, size> bytes) noexcept {
        std::memcpy(bytes_->data(), bytes.data(), size);
    }

    std::span<std::byte const, size> bytes() const noexcept { return *bytes_; }
    std::span<std::byte, size> bytes() noexcept { return *bytes_; }

  private:
    key_place<std::array<std::byte, size>> bytes_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_SECRET_KEY_HPP
