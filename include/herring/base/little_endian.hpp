// herring: integers as little-endian bytes and back, on machines of any byte order.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_LITTLE_ENDIAN_HPP
#define HERRING_BASE_LITTLE_ENDIAN_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// Writes an integer. Cost: one store.
template <class Integer> constexpr void put(std::byte* to, Integer value) noexcept {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

/// Reads an integer. Cost: one load.
template <class Integer> constexpr Integer get(std::byte const* from) noexcept {
    Integer value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
        value =
            static_cast<Integer>(value | static_cast<Integer>(std::to_integer<Integer>(from[i]) << (8 * i)));
    return value;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_LITTLE_ENDIAN_HPP
