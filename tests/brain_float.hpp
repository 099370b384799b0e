// herring: a 16-bit float of another library, as c10::BFloat16 is written: it converts implicitly, and computes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_BRAIN_FLOAT_HPP
#define HERRING_TESTS_BRAIN_FLOAT_HPP

#include "herring/element.hpp"

#include <cstdint>
#include <cstring>

namespace other_library {

struct alignas(2) brain_float {
    std::uint16_t x;

    brain_float() = default;
    brain_float(float value) noexcept {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        std::uint32_t const bias = 0x7fffu + (bits >> 16 & 1u);
        x = value != value ? std::uint16_t{0x7fc0} : static_cast<std::uint16_t>((bits + bias) >> 16);
    }
    operator float() const noexcept {
        std::uint32_t const bits = std::uint32_t{x} << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
};

} // namespace other_library

template <> struct herring::element<other_library::brain_float> : herring::same_bits_as<herring::bfloat16> {};

#endif // HERRING_TESTS_BRAIN_FLOAT_HPP
