// herring: a 64-bit digest of layouts and plans, by which ranks compare them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_DIGEST_HPP
#define HERRING_BASE_DIGEST_HPP

#include "herring/base/config.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// A streaming hash of numbers and texts, the same on every machine and compiler, also in `constexpr`.
///
/// Finds slips, not forgeries: anyone can make two inputs of one digest. Two different inputs that were not
/// made for the purpose share a digest once in 2^64. Texts are hashed with their lengths: "ab","c" differs
/// from "a","bc".
///
/// Cost:    three multiplications a number; texts eight bytes at a time.
/// Source:  FNV-1a over 64-bit words, each word and the end mixed by MurmurHash3's finaliser.
class digest {
  public:
    constexpr digest() = default;
    /// Digests of different seeds do not collide: one seed for each kind of input.
    constexpr explicit digest(std::uint64_t seed) noexcept { word(seed); }

    template <class Number>
    requires(std::integral<Number> || std::is_enum_v<Number>) constexpr digest& add(Number number) noexcept {
        word(static_cast<std::uint64_t>(number));
        return *this;
    }
    constexpr digest& add(std::string_view text) noexcept {
        word(0x7465'7874'0000'0000u + text.size()); // "text": a text differs from two numbers
        std::uint64_t bits = 0;
        std::size_t held = 0;
        for (char const c : text) {
            bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << 8 * held;
            if (++held == 8) {
                word(bits);
                bits = 0;
                held = 0;
            }
        }
        if (held != 0) word(bits);
        return *this;
    }
    constexpr digest& add(char const* text) noexcept { return add(std::string_view(text)); }
    template <class Part> constexpr digest& add_all(Part const& parts) noexcept {
        word(static_cast<std::uint64_t>(parts.size()));
        for (auto const& part : parts) add(part);
        return *this;
    }

    /// Returns the digest of all that was added so far; more may be added afterwards.
    constexpr std::uint64_t value() const noexcept { return mixed(state_); }

  private:
    static constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
        bits ^= bits >> 33;
        bits *= 0xff51'afd7'ed55'8ccdu;
        bits ^= bits >> 33;
        bits *= 0xc4ce'b9fe'1a85'ec53u;
        return bits ^ bits >> 33;
    }
    constexpr void word(std::uint64_t bits) noexcept {
        state_ = (state_ ^ mixed(bits)) * 0x0000'0100'0000'01b3u;
    }

    std::uint64_t state_ = 0xcbf2'9ce4'8422'2325u;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_DIGEST_HPP
