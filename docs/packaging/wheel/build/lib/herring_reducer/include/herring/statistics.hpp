// herring: sum, minimum, maximum and count of a number, in one reduction.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STATISTICS_HPP
#define HERRING_STATISTICS_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// The usual statistics of a number: sum, least, greatest and count.
///
/// Shape:   with update::sum: those of all ranks' numbers together. A NaN is in all three.
/// Example: `auto const s = sums.all_reduce(herring::statistics<double>::of(seconds));` then
///          `s.sum / s.count`.
template <class Number> struct statistics {
    Number sum = 0, min = 0, max = 0;
    std::int64_t count = 0; ///< 0: of no number, and the other three mean nothing

    static constexpr statistics of(Number x) noexcept { return {x, x, x, 1}; }

    friend constexpr bool operator==(statistics const&, statistics const&) = default;
    friend constexpr statistics operator+(statistics const& a, statistics const& b) noexcept {
        if (a.count == 0) return b;
        if (b.count == 0) return a;
        return {static_cast<Number>(a.sum + b.sum), b.min < a.min || detail::is_nan(b.min) ? b.min : a.min,
                b.max > a.max || detail::is_nan(b.max) ? b.max : a.max, a.count + b.count};
    }
};

template <class Number> inline constexpr bool is_element<statistics<Number>> = true;
template <class Number> struct element<statistics<Number>> : own_element<statistics<Number>> {
    static constexpr statistics<Number> canonical(statistics<Number> const& x) noexcept {
        using detail::with_one_nan;
        return {with_one_nan(x.sum), with_one_nan(x.min), with_one_nan(x.max), x.count};
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_STATISTICS_HPP
