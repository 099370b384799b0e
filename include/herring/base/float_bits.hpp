// herring: bit formulas between 16-bit and 32-bit floats, for scalars and for vectors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_FLOAT_BITS_HPP
#define HERRING_BASE_FLOAT_BITS_HPP

#include <cstdint>

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE::detail {

/// Formulas over `Unsigned` (one 32-bit lane, or a vector of them) and its signed and float counterparts.
///
/// Widening is exact. Narrowing rounds to nearest, ties to even, and needs the default rounding mode. A
/// 16-bit result lies in the low half of its lane, sign-extended, so that a signed saturating pack does not
/// change it. Subnormals come from an addition that shifts their bits to the end of the fraction.
template <class Unsigned, class Signed, class Float> struct float_bits {
    static constexpr std::uint32_t infinity = 0x7f80'0000u;

    HERRING_HOST_DEVICE static constexpr Unsigned widen_bfloat16(Unsigned half) noexcept {
        return half << 16;
    }

    /// Not for a NaN whose payload lies in the low half, which could round to an infinity.
    HERRING_HOST_DEVICE static constexpr Signed narrow_bfloat16(Unsigned bits) noexcept {
        Unsigned const even = (bits >> 16) & 1u;
        return as<Signed>(bits + 0x7fffu + even) >> 16;
    }

    HERRING_HOST_DEVICE static constexpr Unsigned widen_float16(Unsigned half) noexcept {
        Unsigned const magnitude = half & 0x7fffu;
        Unsigned const moved = magnitude << 13;
        Unsigned const normal = moved + 0x3800'0000u;
        Unsigned const special = moved + 0x7000'0000u;    // infinity and NaN
        Unsigned const magic = Unsigned{} + 0x3880'0000u; // 2^-14
        Unsigned const subnormal = as<Unsigned>(as<Float>(moved + magic) - as<Float>(magic));
        Signed const order = as<Signed>(magnitude);
        Unsigned const finite = order < 0x400 ? subnormal : normal;
        return (order > 0x7bff ? special : finite) | ((half & 0x8000u) << 16);
    }

    /// Every NaN becomes the quiet one, 0x7e00 with the sign kept.
    HERRING_HOST_DEVICE static constexpr Signed narrow_float16(Unsigned bits) noexcept {
        Unsigned const magnitude = bits & 0x7fff'ffffu;
        Signed const order = as<Signed>(magnitude);
        Unsigned const even = (magnitude >> 13) & 1u;
        Unsigned const normal = (magnitude + 0xc800'0fffu + even) >> 13;
        Unsigned const half = Unsigned{} + 0x3f00'0000u; // 0.5: its last place is the smallest subnormal
        Unsigned const subnormal = as<Unsigned>(as<Float>(magnitude) + as<Float>(half)) - half;
        Unsigned const finite = order < 0x3880'0000 ? subnormal : normal;
        Unsigned const special = order > 0x7f80'0000 ? Unsigned{} + 0x7e00u : Unsigned{} + 0x7c00u;
        Unsigned const result = order > 0x477f'ffff ? special : finite;
        return as<Signed>(result) | (as<Signed>(bits & 0x8000'0000u) >> 16);
    }

    template <class To, class From> HERRING_HOST_DEVICE static constexpr To as(From from) noexcept {
        return __builtin_bit_cast(To, from);
    }
};

using scalar_float_bits = float_bits<std::uint32_t, std::int32_t, float>;

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_FLOAT_BITS_HPP
