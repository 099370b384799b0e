// herring: SIMD blocks of elements in GNU vectors: load, round, store, at whatever width the build allows.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_LANES_HPP
#define HERRING_KERNEL_LANES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"

// With -ffast-math (or -Ofast) the compiler may reorder additions and assume that there is no NaN: results
// would differ in bits between ranks, and a minimum would hide a NaN.
#if ((defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(__FAST_MATH__)) &&                   \
    !defined(HERRING_ALLOW_FAST_MATH)
#error                                                                                                       \
    "herring: compile this file without -ffast-math (its sums need not be the same bits on every rank): put the reducer into a file of its own, as docs/replacing-mpi-allreduce.md does, or define HERRING_ALLOW_FAST_MATH"
#endif

namespace HERRING_NAMESPACE::kernel {

/// Bytes of one vector register, fixed by the flags of the build; nothing is dispatched at run time.
#if defined(__AVX__)
inline constexpr std::size_t vector_bytes = 32;
#else
inline constexpr std::size_t vector_bytes = 16;
#endif

/// False in nvcc's device pass, which parses host functions too, rejects vectors in them and emits none of
/// them.
#if defined(__CUDA_ARCH__)
inline constexpr bool takes_vectors = false;
#else
inline constexpr bool takes_vectors = true;
#endif

template <class Element> struct vector_of { using type [[gnu::vector_size(vector_bytes)]] = Element; };
/// One register of lanes.
template <class Element> using vector = typename vector_of<Element>::type;

namespace detail {

using word_vector = vector<std::uint32_t>;
using int_vector = vector<std::int32_t>;
using float_vector = vector<float>;
using half_vector = vector<std::uint16_t>; // twice as many lanes as a word_vector
using vector_bits = herring::detail::float_bits<word_vector, int_vector, float_vector>;

// g++ 12 unrolls loops over whole vectors, and then warns about the parts that a short array does not have.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif
template <class Vector> HERRING_ALWAYS_INLINE Vector load_vector(void const* from) noexcept {
    Vector result;
    std::memcpy(&result, from, sizeof result);
    return result;
}
template <class Vector> HERRING_ALWAYS_INLINE void store_vector(void* to, Vector value) noexcept {
    std::memcpy(to, &value, sizeof value);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

struct word_pair {
    word_vector low, high;
};

// Moves 16-bit lanes to the upper halves of 32-bit lanes, in order.
HERRING_ALWAYS_INLINE word_pair widen(half_vector half) noexcept {
#if defined(__AVX2__)
    return {word_vector(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(__m256i(half)))) << 16,
            word_vector(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(__m256i(half), 1))) << 16};
#elif defined(__SSE2__) && !defined(__AVX__)
    __m128i const zero = _mm_setzero_si128();
    return {word_vector(_mm_unpacklo_epi16(zero, __m128i(half))),
            word_vector(_mm_unpackhi_epi16(zero, __m128i(half)))};
#else
    word_pair result{};
    for (std::size_t i = 0; i < vector_bytes / 4; ++i) {
        result.low[i] = static_cast<std::uint32_t>(half[i]) << 16;
        result.high[i] = static_cast<std::uint32_t>(half[i + vector_bytes / 4]) << 16;
    }
    return result;
#endif
}

struct float_pair {
    float_vector low, high;
};

// Converts binary16 to float, in order. Most of the work is done in 16-bit lanes: half as many instructions.
HERRING_ALWAYS_INLINE float_pair widen_float16([[maybe_unused]] half_vector half) noexcept {
#if defined(__CUDA_ARCH__)
    return {}; // not a template: nvcc's device pass would instantiate float_bits of vectors, which it rejects
#elif defined(__SSE2__) && !defined(__AVX__)
    using signed_halves = vector<std::int16_t>;
    half_vector const magnitude = half & 0x7fff;
    half_vector const subnormal = half_vector(signed_halves(magnitude) < 0x400);
    half_vector const special = half_vector(signed_halves(magnitude) > 0x7bff); // infinity and NaN
    // The exponent's new bias; a subnormal gets an implicit one, 2^-14, that is subtracted again.
    half_vector const upper = (magnitude >> 3) + (0x3800 + (subnormal & 0x80)) + (special & 0x3800);
    half_vector const lower = magnitude << 13;
    __m128i const zero = _mm_setzero_si128(), one = __m128i(subnormal & 0x3880),
                  sign = __m128i(half & 0x8000);
    __m128 const low = _mm_sub_ps(_mm_castsi128_ps(_mm_unpacklo_epi16(__m128i(lower), __m128i(upper))),
                                  _mm_castsi128_ps(_mm_unpacklo_epi16(zero, one)));
    __m128 const high = _mm_sub_ps(_mm_castsi128_ps(_mm_unpackhi_epi16(__m128i(lower), __m128i(upper))),
                                   _mm_castsi128_ps(_mm_unpackhi_epi16(zero, one)));
    return {_mm_or_ps(low, _mm_castsi128_ps(_mm_unpacklo_epi16(zero, sign))),
            _mm_or_ps(high, _mm_castsi128_ps(_mm_unpackhi_epi16(zero, sign)))};
#else
    auto const words = widen(half);
    return {float_vector(vector_bits::widen_float16(words.low >> 16)),
            float_vector(vector_bits::widen_float16(words.high >> 16))};
#endif
}

// Packs the lower halves of 32-bit lanes, which are sign-extended 16-bit values, in order.
HERRING_ALWAYS_INLINE half_vector narrow(int_vector low, int_vector high) noexcept {
#if defined(__AVX2__)
    return half_vector(_mm256_permute4x64_epi64(_mm256_packs_epi32(__m256i(low), __m256i(high)), 0xd8));
#elif defined(__SSE2__) && !defined(__AVX__)
    return half_vector(_mm_packs_epi32(__m128i(low), __m128i(high)));
#else
    half_vector result{};
    for (std::size_t i = 0; i < vector_bytes / 4; ++i) {
        result[i] = static_cast<std::uint16_t>(low[i]);
        result[i + vector_bytes / 4] = static_cast<std::uint16_t>(high[i]);
    }
    return result;
#endif
}

#if defined(__AVX__)
HERRING_ALWAYS_INLINE bool any_nan(vector<float> a, vector<float> b, vector<float> c,
                                   vector<float> d) noexcept {
    return _mm256_movemask_ps(
               _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q), _mm256_cmp_ps(c, d, _CMP_UNORD_Q))) != 0;
}
HERRING_ALWAYS_INLINE bool any_nan(vector<double> a, vector<double> b, vector<double> c,
                                   vector<double> d) noexcept {
    return _mm256_movemask_pd(
               _mm256_or_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q), _mm256_cmp_pd(c, d, _CMP_UNORD_Q))) != 0;
}
#elif defined(__SSE2__)
HERRING_ALWAYS_INLINE bool any_nan(vector<float> a, vector<float> b, vector<float> c,
                                   vector<float> d) noexcept {
    return _mm_movemask_ps(_mm_or_ps(_mm_cmpunord_ps(a, b), _mm_cmpunord_ps(c, d))) != 0;
}
HERRING_ALWAYS_INLINE bool any_nan(vector<double> a, vector<double> b, vector<double> c,
                                   vector<double> d) noexcept {
    return _mm_movemask_pd(_mm_or_pd(_mm_cmpunord_pd(a, b), _mm_cmpunord_pd(c, d))) != 0;
}
#else
template <class Vector> HERRING_ALWAYS_INLINE bool any_nan(Vector, Vector, Vector, Vector) noexcept {
    return true;
} // tested lane by lane
#endif

} // namespace detail

/// Four registers of accumulators: the unit in which kernels read, combine and write.
template <class Element> struct block {
    using number = accumulator<Element>;
    using lanes = vector<number>;
    /// Elements of a block.
    static constexpr std::size_t size = 4 * vector_bytes / sizeof(number);

    lanes a, b, c, d;

    /// Loads elements that are accumulators already, at any alignment.
    HERRING_ALWAYS_INLINE static block load_wide(void const* from) noexcept {
        auto const* const bytes = static_cast<std::byte const*>(from);
        return {detail::load_vector<lanes>(bytes), detail::load_vector<lanes>(bytes + vector_bytes),
                detail::load_vector<lanes>(bytes + 2 * vector_bytes),
                detail::load_vector<lanes>(bytes + 3 * vector_bytes)};
    }
    HERRING_ALWAYS_INLINE void store_wide(void* to) const noexcept {
        auto* const bytes = static_cast<std::byte*>(to);
        detail::store_vector(bytes, a);
        detail::store_vector(bytes + vector_bytes, b);
        detail::store_vector(bytes + 2 * vector_bytes, c);
        detail::store_vector(bytes + 3 * vector_bytes, d);
    }

    /// Loads elements, at any alignment.
    HERRING_ALWAYS_INLINE static block load(void const* from) noexcept {
        if constexpr (rounded::full) {
            return load_wide(from);
        } else {
            auto const* const bytes = static_cast<std::byte const*>(from);
#if defined(__F16C__)
            if constexpr (std::is_same_v<Element, float16>)
                return {from_f16c(bytes), from_f16c(bytes + vector_bytes / 2),
                        from_f16c(bytes + vector_bytes), from_f16c(bytes + vector_bytes / 2 * 3)};
#endif
            auto const first = widen(detail::load_vector<detail::half_vector>(bytes));
            auto const second = widen(detail::load_vector<detail::half_vector>(bytes + vector_bytes));
            return {first.low, first.high, second.low, second.high};
        }
    }

    /// Registers of rounded elements: several targets cost one rounding.
    struct rounded {
        static constexpr bool full = sizeof(Element) == sizeof(number);
        using type = std::conditional_t<full, lanes, detail::half_vector>;
        type at[full ? 4 : 2];
        HERRING_ALWAYS_INLINE void store(void* to) const noexcept {
            auto* const bytes = static_cast<std::byte*>(to);
            detail::store_vector(bytes, at[0]);
            detail::store_vector(bytes + vector_bytes, at[1]);
            if constexpr (full) {
                detail::store_vector(bytes + 2 * vector_bytes, at[2]);
                detail::store_vector(bytes + 3 * vector_bytes, at[3]);
            }
        }
    };

    HERRING_ALWAYS_INLINE bool any_nan() const noexcept {
        if constexpr (std::is_floating_point_v<number>)
            return detail::any_nan(a, b, c, d);
        else
            return false;
    }
    /// Every NaN becomes the canonical quiet NaN, so that results have the same bits on every rank.
    HERRING_ALWAYS_INLINE block canonical() const noexcept {
        if constexpr (std::is_floating_point_v<number>)
            return {canonical(a), canonical(b), canonical(c), canonical(d)};
        else
            return *this;
    }
    /// Rounds to Element, to nearest, ties to even; NaNs must be canonical.
    HERRING_ALWAYS_INLINE rounded round() const noexcept {
        if constexpr (std::is_same_v<Element, bool>) {
            return {{lanes(a != 0) & 1, lanes(b != 0) & 1, lanes(c != 0) & 1, lanes(d != 0) & 1}};
        } else if constexpr (rounded::full) {
            return {{a, b, c, d}};
        } else {
#if defined(__F16C__)
            if constexpr (std::is_same_v<Element, float16>) return {{to_f16c(a, b), to_f16c(c, d)}};
#endif
            return {{detail::narrow(narrow(a), narrow(b)), detail::narrow(narrow(c), narrow(d))}};
        }
    }

    /// Returns the numbers that `load` reads after the block was rounded and stored.
    HERRING_ALWAYS_INLINE block rounded_numbers() const noexcept {
        if constexpr (rounded::full) {
            return *this;
        } else if constexpr (std::is_same_v<Element, bfloat16>) {
            auto const kept = [](lanes value) __attribute__((always_inline)) {
                return lanes(narrow(value) << 16);
            };
            return {kept(a), kept(b), kept(c), kept(d)};
        } else {
            auto const halves = round();
#if defined(__F16C__)
            auto const* const bytes = reinterpret_cast<std::byte const*>(halves.at);
            return {from_f16c(bytes), from_f16c(bytes + vector_bytes / 2), from_f16c(bytes + vector_bytes),
                    from_f16c(bytes + vector_bytes / 2 * 3)};
#else
            auto const first = widen(halves.at[0]), second = widen(halves.at[1]);
            return {first.low, first.high, second.low, second.high};
#endif
        }
    }

    template <class Combine> HERRING_ALWAYS_INLINE block combined(block const& with, Combine) const noexcept {
        return {Combine::combine(a, with.a), Combine::combine(b, with.b), Combine::combine(c, with.c),
                Combine::combine(d, with.d)};
    }
    template <class Lift> HERRING_ALWAYS_INLINE block lifted(Lift) const noexcept {
        return {Lift::lift(a), Lift::lift(b), Lift::lift(c), Lift::lift(d)};
    }
    template <class Finish> HERRING_ALWAYS_INLINE block finished(Finish const& finish) const noexcept {
        return {finish(a), finish(b), finish(c), finish(d)};
    }

  private:
    HERRING_ALWAYS_INLINE static lanes canonical(lanes value) noexcept {
        return value == value ? value : lanes{} + number(__builtin_nanf(""));
    }
    HERRING_ALWAYS_INLINE static detail::float_pair widen(detail::half_vector half) noexcept {
        if constexpr (std::is_same_v<Element, bfloat16>) {
            auto const words = detail::widen(half);
            return {lanes(words.low), lanes(words.high)};
        } else {
            return detail::widen_float16(half);
        }
    }
    HERRING_ALWAYS_INLINE static detail::int_vector narrow(lanes value) noexcept {
        if constexpr (std::is_same_v<Element, bfloat16>)
            return detail::vector_bits::narrow_bfloat16(detail::word_vector(value));
        else
            return detail::vector_bits::narrow_float16(detail::word_vector(value));
    }
#if defined(__F16C__)
    HERRING_ALWAYS_INLINE static lanes from_f16c(std::byte const* from) noexcept {
        return lanes(_mm256_cvtph_ps(detail::load_vector<__m128i>(from)));
    }
    HERRING_ALWAYS_INLINE static detail::half_vector to_f16c(lanes low, lanes high) noexcept {
        constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        return detail::half_vector(
            _mm256_insertf128_si256(_mm256_castsi128_si256(_mm256_cvtps_ph(__m256(low), nearest)),
                                    _mm256_cvtps_ph(__m256(high), nearest), 1));
    }
#endif
};

/// Element types that are combined one by one have no block.
template <class Element>
requires(!element_in_vectors<Element>) //
    struct block<Element> {
    static constexpr std::size_t size = 1;
    struct rounded {};
};

/// Loads one element into its accumulator.
template <class Element> HERRING_ALWAYS_INLINE accumulator<Element> load_one(void const* from) noexcept {
    Element result;
    std::memcpy(static_cast<void*>(&result), from, sizeof result);
    return static_cast<accumulator<Element>>(result);
}

/// Rounds one accumulator to Element; every NaN becomes the canonical one.
template <class Element> HERRING_ALWAYS_INLINE Element round_one(accumulator<Element> value) noexcept {
    if constexpr (std::is_floating_point_v<accumulator<Element>>)
        if (!(value == value)) value = __builtin_nanf("");
    if constexpr (requires { element<Element>::canonical(value); })
        value = element<Element>::canonical(value);
    return static_cast<Element>(value);
}

/// Stores one result. Padding bits in it become zero with g++, and are unspecified with other compilers.
template <class Element> HERRING_ALWAYS_INLINE void store_one(void* to, Element value) noexcept {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    if constexpr (std::is_class_v<Element> && !element_in_vectors<Element>) __builtin_clear_padding(&value);
#endif
#endif
    std::memcpy(to, &value, sizeof value);
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_LANES_HPP
