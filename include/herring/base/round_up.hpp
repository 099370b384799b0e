// herring: whole numbers that are rounded up.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_ROUND_UP_HPP
#define HERRING_BASE_ROUND_UP_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

constexpr std::size_t divide_up(std::size_t value, std::size_t by) noexcept { return (value + by - 1) / by; }
/// The next multiple of `to`, or `value` itself.
constexpr std::size_t round_up(std::size_t value, std::size_t to) noexcept {
    return divide_up(value, to) * to;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_ROUND_UP_HPP
