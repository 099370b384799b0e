// herring: values for tests of sums: bits of every kind, alike in kind for all sources of an element.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CUDA_BIT_PATTERNS_HPP
#define HERRING_TESTS_CUDA_BIT_PATTERNS_HPP

#include "herring/element.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace bit_patterns {

/// What an element's sources are.
enum class kind : std::uint64_t {
    any,       ///< all bits by chance
    alike,     ///< of one magnitude: sums round and cancel
    subnormal, ///< and −0 now and then
    zero,      ///< of both signs
    special,   ///< infinite, quiet and signalling NaNs with payloads, and numbers
    largest,   ///< next to the largest, of one sign or of both: sums overflow
    halfway    ///< the first two add up to what lies in the middle between two numbers
};
inline constexpr std::uint64_t kinds = 7;

inline std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
inline kind kind_of(std::uint64_t element) noexcept {
    return static_cast<kind>(mixed(element * 0x9e3779b97f4a7c15u + 1) % kinds);
}

template <class T> inline constexpr int fraction_bits = 0; // of integers
template <> inline constexpr int fraction_bits<float> = 23;
template <> inline constexpr int fraction_bits<double> = 52;
template <> inline constexpr int fraction_bits<herring::bfloat16> = 7;
template <> inline constexpr int fraction_bits<herring::float16> = 10;

template <class T> T from_bits(std::uint64_t bits) noexcept {
    T made;
    std::memcpy(static_cast<void*>(&made), &bits, sizeof made); // the lower ones
    return made;
}

/// Source s of an element, which is a number that stands for it.
template <class T> T value(std::uint64_t element, int s) noexcept {
    std::uint64_t const common = mixed(element * 0x9e3779b97f4a7c15u + 2);
    std::uint64_t const own = mixed(common + static_cast<std::uint64_t>(s) * 0x9e3779b97f4a7c15u);
    if constexpr (fraction_bits<T> == 0) {
        return from_bits<T>(own);
    } else {
        constexpr int below = fraction_bits<T>, all = static_cast<int>(sizeof(T)) * 8;
        constexpr std::uint64_t most = (std::uint64_t{1} << (all - 1 - below)) - 1; // of exponents
        constexpr std::uint64_t ones = (std::uint64_t{1} << below) - 1;
        std::uint64_t const fraction = own >> 8 & ones, chance = own & 0xff;
        auto const made = [](std::uint64_t negative, std::uint64_t exponent, std::uint64_t rest) {
            return from_bits<T>((negative & 1) << (all - 1) | exponent << below | rest);
        };
        switch (kind_of(element)) {
        case kind::any:
            break;
        case kind::alike:
            return made(chance, 4 + common % (most - 8) + (chance >> 1) % 3, fraction);
        case kind::subnormal:
            return made(chance, 0, chance < 16 ? 0 : fraction);
        case kind::zero:
            return made(chance % 8 != 0, 0, 0);
        case kind::special:
            if (chance < 64) return made(chance, most, 0);
            if (chance < 192) return made(chance, most, fraction | (fraction == 0 ? 1 : 0));
            break;
        case kind::largest:
            return made(common & 2 ? common : chance, most - 1, fraction);
        case kind::halfway: {
            constexpr auto down = static_cast<std::uint64_t>(below) + 1;
            std::uint64_t const exponent = down + 1 + (common >> 8) % (most - down - 2);
            if (s == 0) return made(common, exponent, fraction);
            if (s == 1) return made(common, exponent - down, 0);
            return made(chance, 0, 0);
        }
        }
        return from_bits<T>(own);
    }
}

} // namespace bit_patterns

#endif // HERRING_TESTS_CUDA_BIT_PATTERNS_HPP
