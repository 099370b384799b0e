// herring: exponential and logarithm of vectors of floats, the same bits with every compiler, flag and width.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_EXPONENTIAL_HPP
#define HERRING_KERNEL_EXPONENTIAL_HPP

#include <cstdint>

#include "herring/base/config.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/kernel/rows.hpp"

namespace HERRING_NAMESPACE::kernel {

/// a · b, rounded before anything is added to it. Compilers would fuse it with an addition where the
/// processor can, and the bits of the sum would depend on flags.
template <class Vector> HERRING_ALWAYS_INLINE Vector product(Vector a, Vector b) noexcept {
    Vector result = a * b;
#if defined(__AVX512VL__)
    asm("" : "+v"(result));
#elif defined(__FMA__) || defined(__FMA4__)
    asm("" : "+x"(result));
#elif defined(__aarch64__)
    asm("" : "+w"(result));
#endif
    return result;
}

namespace detail {
using floats = vector<float>;
using words = vector<std::uint32_t>;

HERRING_ALWAYS_INLINE floats all(float x) noexcept { return floats{} + x; }
HERRING_ALWAYS_INLINE floats horner(floats sum, floats x, float next) noexcept {
    return kernel::product(sum, x) + next;
}
} // namespace detail

/// Below this number `exponential` is 0: ln 2^-126, rounded up. Subnormal results would be slow, and too
/// small to count.
inline constexpr float least_exponent = -87.3365f;

namespace detail {
// Takes each step for all registers of `x` by `apply`: they are independent, so the processor computes them
// in parallel.
template <class Apply, class Numbers>
HERRING_ALWAYS_INLINE Numbers exponential_by(Apply apply, Numbers const& x) noexcept {
    constexpr float magic = 12582912.0f; // 1.5 · 2^23: adding it rounds to an integer, in the low bits
    auto const step = [&](Numbers const& sum, Numbers const& at, float next) __attribute__((always_inline)) {
        return apply([next](floats s, floats r) { return detail::horner(s, r, next); }, sum, at);
    };
    Numbers const shifted =
        apply([](floats v) { return kernel::product(v, all(1.44269504088896341f)) + magic; }, x);
    Numbers r = apply( // exact: this half of ln 2 has 9 bits
        [](floats v, floats s) { return v - kernel::product(s - magic, all(0.693359375f)); }, x, shifted);
    r = apply([](floats v, floats s) { return v - kernel::product(s - magic, all(-2.12194440e-4f)); }, r,
              shifted);
    Numbers p = apply([](floats v) { return detail::horner(all(1.9875691500e-4f), v, 1.3981999507e-3f); }, r);
    p = step(p, r, 8.3334519073e-3f);
    p = step(p, r, 4.1665795894e-2f);
    p = step(p, r, 1.6666665459e-1f);
    p = step(p, r, 5.0000001201e-1f);
    p = apply([](floats s, floats v) { return kernel::product(s, kernel::product(v, v)); }, p, r);
    p = apply([](floats s, floats v) { return (s + v) + 1.0f; }, p, r);
    return apply(
        [](floats y, floats s, floats v) {
            words const scaled = words(y) + (words(s) << 23); // · 2^n
            return floats(scaled & words(v >= all(least_exponent)));
        },
        p, shifted, x);
}
} // namespace detail

/// e^x of each lane, for x ≤ 0 and −inf. Not for NaN.
///
/// Shape:   at most 2 ulp from the exact value; 1 for x = 0, 0 below `least_exponent`.
/// Cost:    some 20 instructions a register.
/// Source:  x = n·ln 2 + r, |r| ≤ ln 2 / 2; the polynomial of degree 7 of Cephes' expf.
HERRING_ALWAYS_INLINE vector<float> exponential(vector<float> x) noexcept {
    return detail::exponential_by([](auto f, auto const&... of) { return f(of...); }, x);
}
/// The same for four registers, in less than four times the time of one.
HERRING_ALWAYS_INLINE block<float> exponential(block<float> const& x) noexcept {
    return detail::exponential_by([](auto f, auto const&... of) { return kernel::each(f, of...); }, x);
}

/// ln x of each lane, for normal x > 0; undefined but finite for 0 and for subnormal x.
///
/// Shape:   at most 2 ulp from the exact value.
/// Cost:    some 30 instructions a register.
/// Source:  x = m·2^e, √½ ≤ m < √2; the polynomial of Cephes' logf.
HERRING_ALWAYS_INLINE vector<float> logarithm(vector<float> x) noexcept {
    using namespace detail;
    using signed_words = vector<std::int32_t>;
    words const bits = words(x);
    floats m = floats((bits & 0x007f'ffffu) | 0x3f00'0000u); // [½, 1)
    signed_words const below = m < all(0.707106781186547524f);
    floats const e = __builtin_convertvector(signed_words(bits >> 23) - 126 + below, floats);
    m = m - 1.0f + floats(words(m) & words(below));
    floats const z = kernel::product(m, m);
    floats p = horner(all(7.0376836292e-2f), m, -1.1514610310e-1f);
    p = horner(p, m, 1.1676998740e-1f);
    p = horner(p, m, -1.2420140846e-1f);
    p = horner(p, m, 1.4249322787e-1f);
    p = horner(p, m, -1.6668057665e-1f);
    p = horner(p, m, 2.0000714765e-1f);
    p = horner(p, m, -2.4999993993e-1f);
    p = horner(p, m, 3.3333331174e-1f);
    floats y = kernel::product(kernel::product(p, m), z);
    y = y + kernel::product(e, all(-2.12194440e-4f));
    y = y - kernel::product(z, all(0.5f));
    return (m + y) + kernel::product(e, all(0.693359375f));
}

/// The same for one number: the same bits as a lane.
HERRING_ALWAYS_INLINE float exponential(float x) noexcept { return exponential(detail::all(x))[0]; }
HERRING_ALWAYS_INLINE float logarithm(float x) noexcept { return logarithm(detail::all(x))[0]; }

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_EXPONENTIAL_HPP
