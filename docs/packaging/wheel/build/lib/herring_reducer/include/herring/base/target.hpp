// herring: the inline namespace of a translation unit: version, set-up compiled apart, instructions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_TARGET_HPP
#define HERRING_BASE_TARGET_HPP

#include "herring/base/version.hpp"

// A linker keeps one copy of an inline function, the first that it meets. Under one name, code that was
// compiled without -mavx2 would run AVX2, and code of one version would run another version's. So all of
// Herring lies in an inline namespace named after the version, HERRING_SEPARATE and the instructions that the
// flags allow: herring::v0_1::world, or herring::v0_1_separate_avx2_fma::world. A `world&` that passes
// between translation units that differ in one of them is a link error that shows both names. Exceptions and
// results are one type for all: see error.hpp.
//
// The name of the instructions has a level and, behind it, what the level does not imply. Left out are
// instructions that no compiler makes of ordinary code (AES, AMX, ...).

#if defined(__AVX2__) && defined(__BMI__) && defined(__BMI2__) && defined(__F16C__) && defined(__FMA__) &&   \
    defined(__LZCNT__) && defined(__MOVBE__)
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) &&       \
    defined(__AVX512VL__)
#define HERRING_TARGET_LEVEL _x86_64_v4
#else
#define HERRING_TARGET_LEVEL _x86_64_v3
#define HERRING_TARGET_BELOW_V4
#endif
#else
#define HERRING_TARGET_BELOW_V3
#define HERRING_TARGET_BELOW_V4
#if defined(__AVX2__)
#define HERRING_TARGET_LEVEL _avx2
#elif defined(__AVX__)
#define HERRING_TARGET_LEVEL _avx
#elif defined(__SSE4_2__)
#define HERRING_TARGET_LEVEL _sse4_2
#elif defined(__SSE4_1__)
#define HERRING_TARGET_LEVEL _sse4_1
#elif defined(__SSSE3__)
#define HERRING_TARGET_LEVEL _ssse3
#elif defined(__SSE3__)
#define HERRING_TARGET_LEVEL _sse3
#elif defined(__POPCNT__) || defined(__LZCNT__) || defined(__BMI__) || defined(__BMI2__) || defined(__MOVBE__)
#define HERRING_TARGET_LEVEL _x86
#elif defined(__ARM_FEATURE_SVE2)
#define HERRING_TARGET_LEVEL _sve2
#elif defined(__ARM_FEATURE_SVE)
#define HERRING_TARGET_LEVEL _sve
#elif defined(__ARM_FEATURE_ATOMICS) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) ||                     \
    defined(__ARM_FEATURE_DOTPROD)
#define HERRING_TARGET_LEVEL _arm
#elif defined(__FAST_MATH__)
#define HERRING_TARGET_LEVEL _any
#else
#define HERRING_TARGET_LEVEL
#endif
#endif

#if defined(__POPCNT__) && !defined(__SSE4_2__)
#define HERRING_TARGET_POPCNT _popcnt
#else
#define HERRING_TARGET_POPCNT
#endif
#if defined(__FMA__) && defined(HERRING_TARGET_BELOW_V3)
#define HERRING_TARGET_FMA _fma
#else
#define HERRING_TARGET_FMA
#endif
#if defined(__F16C__) && defined(HERRING_TARGET_BELOW_V3)
#define HERRING_TARGET_F16C _f16c
#else
#define HERRING_TARGET_F16C
#endif
#if defined(__BMI__) && defined(HERRING_TARGET_BELOW_V3)
#define HERRING_TARGET_BMI _bmi
#else
#define HERRING_TARGET_BMI
#endif
#if defined(__BMI2__) && defined(HERRING_TARGET_BELOW_V3)
#define HERRING_TARGET_BMI2 _bmi2
#else
#define HERRING_TARGET_BMI2
#endif
#if defined(__LZCNT__) && defined(HERRING_TARGET_BELOW_V3)
#define HERRING_TARGET_LZCNT _lzcnt
#else
#define HERRING_TARGET_LZCNT
#endif
#if defined(__MOVBE__) && defined(HERRING_TARGET_BELOW_V3)
#define HERRING_TARGET_MOVBE _movbe
#else
#define HERRING_TARGET_MOVBE
#endif
#if defined(__AVX512F__) && defined(HERRING_TARGET_BELOW_V4)
#define HERRING_TARGET_AVX512F _avx512f
#else
#define HERRING_TARGET_AVX512F
#endif
#if defined(__AVX512BW__) && defined(HERRING_TARGET_BELOW_V4)
#define HERRING_TARGET_AVX512BW _bw
#else
#define HERRING_TARGET_AVX512BW
#endif
#if defined(__AVX512DQ__) && defined(HERRING_TARGET_BELOW_V4)
#define HERRING_TARGET_AVX512DQ _dq
#else
#define HERRING_TARGET_AVX512DQ
#endif
#if defined(__AVX512VL__) && defined(HERRING_TARGET_BELOW_V4)
#define HERRING_TARGET_AVX512VL _vl
#else
#define HERRING_TARGET_AVX512VL
#endif
#if defined(__AVX512VNNI__)
#define HERRING_TARGET_VNNI _vnni
#else
#define HERRING_TARGET_VNNI
#endif
#if defined(__AVX512VBMI__) || defined(__AVX512VBMI2__) || defined(__AVX512BITALG__) ||                      \
    defined(__AVX512VPOPCNTDQ__) || defined(__AVX512IFMA__)
#define HERRING_TARGET_VBMI _vbmi
#else
#define HERRING_TARGET_VBMI
#endif
#if defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define HERRING_TARGET_FP16 _fp16
#else
#define HERRING_TARGET_FP16
#endif
#if defined(__AVXVNNI__)
#define HERRING_TARGET_AVXVNNI _avxvnni
#else
#define HERRING_TARGET_AVXVNNI
#endif
#if defined(__GFNI__)
#define HERRING_TARGET_GFNI _gfni
#else
#define HERRING_TARGET_GFNI
#endif
#if defined(__ARM_FEATURE_ATOMICS)
#define HERRING_TARGET_LSE _lse
#else
#define HERRING_TARGET_LSE
#endif
#if defined(__ARM_FEATURE_DOTPROD)
#define HERRING_TARGET_DOTPROD _dotprod
#else
#define HERRING_TARGET_DOTPROD
#endif
#if defined(__FAST_MATH__)
#define HERRING_TARGET_FAST_MATH _fast_math
#else
#define HERRING_TARGET_FAST_MATH
#endif

#if defined(HERRING_SEPARATE)
#define HERRING_TARGET_SEPARATE _separate
#else
#define HERRING_TARGET_SEPARATE
#endif

#define HERRING_TARGET_JOIN_(major, minor, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)    \
    v##major##_##minor##a##b##c##d##e##f##g##h##i##j##k##l##m##n##o##p##q##r##s##t##u
#define HERRING_TARGET_JOIN(...) HERRING_TARGET_JOIN_(__VA_ARGS__)
#define HERRING_TARGET                                                                                       \
    HERRING_TARGET_JOIN(                                                                                     \
        HERRING_VERSION_MAJOR, HERRING_VERSION_MINOR, HERRING_TARGET_SEPARATE, HERRING_TARGET_LEVEL,         \
        HERRING_TARGET_POPCNT, HERRING_TARGET_FMA, HERRING_TARGET_F16C, HERRING_TARGET_BMI,                  \
        HERRING_TARGET_BMI2, HERRING_TARGET_LZCNT, HERRING_TARGET_MOVBE, HERRING_TARGET_AVX512F,             \
        HERRING_TARGET_AVX512BW, HERRING_TARGET_AVX512DQ, HERRING_TARGET_AVX512VL, HERRING_TARGET_VNNI,      \
        HERRING_TARGET_VBMI, HERRING_TARGET_FP16, HERRING_TARGET_AVXVNNI, HERRING_TARGET_GFNI,               \
        HERRING_TARGET_LSE, HERRING_TARGET_DOTPROD, HERRING_TARGET_FAST_MATH)
#define HERRING_NAMESPACE herring::inline HERRING_TARGET

namespace HERRING_NAMESPACE::detail {
/// Default template argument of functions of classes in `herring` itself: their names differ with the flags.
struct target;
} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_TARGET_HPP
