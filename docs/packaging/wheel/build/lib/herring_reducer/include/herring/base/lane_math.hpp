// herring: roots and products, fused or not, of numbers and of GNU vectors: the same bits in every build.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_LANE_MATH_HPP
#define HERRING_BASE_LANE_MATH_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE::lanes {

/// The type of a number, or of the lanes of a GNU vector: float or double.
template <class Lanes> struct number_of { using type = std::remove_cvref_t<decltype(Lanes{}[0])>; };
template <class Lanes>
requires(std::is_arithmetic_v<Lanes>) struct number_of<Lanes> {
    using type = Lanes;
};
template <class Lanes> using number = typename number_of<Lanes>::type;

/// Returns the value, rounded to its type: the compiler fuses nothing across the call. Otherwise it makes a
/// fused multiply-add of a · b + c where the processor has one, which gives other bits.
template <class Lanes> HERRING_ALWAYS_INLINE Lanes rounded(Lanes value) noexcept {
#if defined(__SSE2__)
    __asm__("" : "+x"(value));
#elif defined(__aarch64__)
    __asm__("" : "+w"(value));
#else
    __asm__("" : "+m"(value));
#endif
    return value;
}

/// a · b, rounded before anything is added to it. Either may be one number for all lanes.
template <class Left, class Right> HERRING_ALWAYS_INLINE auto product(Left left, Right right) noexcept {
    return lanes::rounded(left * right);
}

/// Square root, correctly rounded, lane by lane.
template <class Lanes> HERRING_ALWAYS_INLINE Lanes sqrt(Lanes value) noexcept {
    if constexpr (std::is_same_v<Lanes, float>) {
        return __builtin_sqrtf(value);
    } else if constexpr (std::is_same_v<Lanes, double>) {
        return __builtin_sqrt(value);
    } else {
        constexpr bool is_float = std::is_same_v<number<Lanes>, float>;
#if defined(__SSE2__)
        if constexpr (sizeof(Lanes) == 16 && is_float) return Lanes(_mm_sqrt_ps(__m128(value)));
        if constexpr (sizeof(Lanes) == 16 && !is_float) return Lanes(_mm_sqrt_pd(__m128d(value)));
#endif
#if defined(__AVX__)
        if constexpr (sizeof(Lanes) == 32 && is_float) return Lanes(_mm256_sqrt_ps(__m256(value)));
        if constexpr (sizeof(Lanes) == 32 && !is_float) return Lanes(_mm256_sqrt_pd(__m256d(value)));
#endif
        for (std::size_t i = 0; i < sizeof(Lanes) / sizeof(number<Lanes>); ++i)
            value[i] = lanes::sqrt(static_cast<number<Lanes>>(value[i]));
        return value;
    }
}

/// a · b + c, rounded once.
///
/// Cost: an instruction where the build allows it (`-mfma`), else a slow call for each lane. `product` costs
///       the same everywhere.
template <class Lanes> HERRING_ALWAYS_INLINE Lanes fma(Lanes left, Lanes right, Lanes more) noexcept {
    if constexpr (std::is_same_v<Lanes, float>) {
        return __builtin_fmaf(left, right, more);
    } else if constexpr (std::is_same_v<Lanes, double>) {
        return __builtin_fma(left, right, more);
    } else {
#if defined(__FMA__)
        constexpr bool is_float = std::is_same_v<number<Lanes>, float>;
        if constexpr (sizeof(Lanes) == 16 && is_float)
            return Lanes(_mm_fmadd_ps(__m128(left), __m128(right), __m128(more)));
        if constexpr (sizeof(Lanes) == 16 && !is_float)
            return Lanes(_mm_fmadd_pd(__m128d(left), __m128d(right), __m128d(more)));
        if constexpr (sizeof(Lanes) == 32 && is_float)
            return Lanes(_mm256_fmadd_ps(__m256(left), __m256(right), __m256(more)));
        if constexpr (sizeof(Lanes) == 32 && !is_float)
            return Lanes(_mm256_fmadd_pd(__m256d(left), __m256d(right), __m256d(more)));
#endif
        for (std::size_t i = 0; i < sizeof(Lanes) / sizeof(number<Lanes>); ++i)
            more[i] = lanes::fma(static_cast<number<Lanes>>(left[i]), static_cast<number<Lanes>>(right[i]),
                                 static_cast<number<Lanes>>(more[i]));
        return more;
    }
}

/// base to the power exponent, by squaring: the same bits with every mathematical library.
inline double power(double base, std::uint64_t exponent) noexcept {
    double result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = lanes::product(result, base);
        base = lanes::product(base, base);
    }
    return result;
}

} // namespace HERRING_NAMESPACE::lanes

#endif // HERRING_BASE_LANE_MATH_HPP
