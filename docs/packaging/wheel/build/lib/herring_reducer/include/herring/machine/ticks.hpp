// herring: times by the processor's time-stamp counter, and their conversion to the monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_TICKS_HPP
#define HERRING_MACHINE_TICKS_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace HERRING_NAMESPACE::detail {

/// Returns the time of the monotonic clock in nanoseconds.
inline std::int64_t monotonic_ns() noexcept { return clock::now().time_since_epoch().count(); }

/// One moment on both clocks.
struct tick_anchor {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
    std::uint64_t width = 0; ///< ticks between the two readings before and after that of the clock
};

/// Reads ticks of the time-stamp counter if it is invariant (one rate at any frequency and in any sleep state
/// of the core), else nanoseconds of the monotonic clock.
///
/// Cost:   a reading of the counter takes 10 to 20 ns, of the clock 20 to 40 ns.
/// Source: Intel SDM 17.17.1: CPUID.80000007H:EDX[8].
class tick_counter {
  public:
    tick_counter() noexcept : tsc_(has_invariant_tsc()) {}
    /// `false`: uses the clock.
    explicit tick_counter(bool tsc) noexcept : tsc_(tsc && has_invariant_tsc()) {}

    HERRING_SETUP static bool has_invariant_tsc() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
#else
        return false;
#endif
    }
    bool is_tsc() const noexcept { return tsc_; }

    HERRING_ALWAYS_INLINE std::uint64_t now() const noexcept {
#if defined(__x86_64__) || defined(__i386__)
        if (tsc_) [[likely]]
            return __builtin_ia32_rdtsc();
#endif
        return static_cast<std::uint64_t>(monotonic_ns());
    }

    /// Reads both clocks `tries` times and returns the reading that took the least time.
    tick_anchor anchor(int tries = 1) const noexcept {
        tick_anchor best{0, 0, ~std::uint64_t{0}};
        for (; tries > 0; --tries) {
            std::uint64_t const before = now();
            std::int64_t const ns = monotonic_ns();
            std::uint64_t const width = now() - before;
            if (width < best.width) best = {before + width / 2, ns, width};
        }
        return best;
    }

  private:
    bool tsc_;
};

/// Converts ticks → nanoseconds of the monotonic clock by the line through two anchors.
class tick_line {
  public:
    tick_line() = default;
    /// Anchors at the same moment: one tick a nanosecond.
    constexpr tick_line(tick_anchor const& from, tick_anchor const& to) noexcept
        : from_(from),
          ns_a_tick_(to.ticks > from.ticks && to.ns > from.ns
                         ? static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks)
                         : 1.0) {}

    /// Any bits give a time, within 146 years of the anchor.
    constexpr std::int64_t ns(std::uint64_t ticks) const noexcept {
        constexpr double most = 4.6e18;
        double const since = static_cast<double>(static_cast<std::int64_t>(ticks - from_.ticks)) * ns_a_tick_;
        double const at = since > most ? most : since < -most ? -most : since;
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(from_.ns) +
                                         static_cast<std::uint64_t>(static_cast<std::int64_t>(at)));
    }
    constexpr double ns_a_tick() const noexcept { return ns_a_tick_; }

  private:
    tick_anchor from_{};
    double ns_a_tick_ = 1.0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_TICKS_HPP
