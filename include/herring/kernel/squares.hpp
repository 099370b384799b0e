// herring: the sum of squares of an array, in double, in an order that no build changes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_SQUARES_HPP
#define HERRING_KERNEL_SQUARES_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/model/element.hpp"

#include <cstddef>
#include <type_traits>

namespace HERRING_NAMESPACE::kernel {

/// An element type whose squares can be summed.
template <class Element>
concept has_squares = element_in_vectors<Element> && std::is_floating_point_v<accumulator<Element>>;

/// Returns Σ values[i]². Element i is added to sum i mod 8; then the eight sums are added in order.
///
/// Cost:   reads the values once.
/// Errors: not finite if one of the values is not, or if the square of a double overflows.
template <has_squares Element> double sum_of_squares(Element const* values, std::size_t count) noexcept {
    auto const wide = [](Element value) {
        return static_cast<double>(static_cast<accumulator<Element>>(value));
    };
    using pair [[gnu::vector_size(16)]] = double;
    pair sums[4] = {};
    std::size_t i = 0;
    for (; count - i >= 8; i += 8)
        for (std::size_t p = 0; p < 4; ++p) {
            pair const two{wide(values[i + 2 * p]), wide(values[i + 2 * p + 1])};
            sums[p] += lanes::product(two, two);
        }
    double each[8];
    for (std::size_t n = 0; n < 8; ++n) each[n] = sums[n / 2][n % 2];
    for (; i < count; ++i) {
        double const value = wide(values[i]);
        each[i % 8] += lanes::product(value, value);
    }
    double total = 0;
    for (double const one : each) total += one;
    return total;
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_SQUARES_HPP
