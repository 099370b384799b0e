// herring: the sum of squares of an array, in one fixed order of additions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_SQUARES_HPP
#define HERRING_KERNEL_SQUARES_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/element.hpp"

#include <cstddef>
#include <type_traits>

namespace HERRING_NAMESPACE::kernel {

/// An element type whose squares can be summed.
template <class Element>
concept has_squares = element_in_vectors<Element> && std::is_floating_point_v<accumulator<Element>>;

/// Σ x², in double.
///
/// Bits: of 16 partial sums, of every 16th element each, which are added in their order: the same in every build.
/// Cost: one pass.
template <has_squares Element> double squares(Element const* values, std::size_t count) noexcept {
    constexpr std::size_t partial_sums = 16; // hide the latency of an addition
    auto const square = [](Element value) {
        double const wide = static_cast<accumulator<Element>>(value);
        if constexpr (std::is_same_v<Element, double>)
            return lanes::product(wide, wide);
        else
            return wide * wide; // exact: it may be contracted
    };
    double sums[partial_sums] = {};
    std::size_t i = 0;
    for (; i + partial_sums <= count; i += partial_sums)
        for (std::size_t n = 0; n < partial_sums; ++n) sums[n] += square(values[i + n]);
    for (std::size_t n = 0; i < count; ++i, ++n) sums[n] += square(values[i]);
    double all = 0;
    for (double const sum : sums) all += sum;
    return all;
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_SQUARES_HPP
