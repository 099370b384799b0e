// herring: byte units as literals, as in 25_MiB, sizes rounded up, and integers as little-endian bytes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_BYTES_HPP
#define HERRING_BASE_BYTES_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE {
/// Example: `using namespace herring::literals; using buckets = herring::fusion::balanced_buffer<4_MiB>;`
inline namespace literals {

constexpr std::size_t operator""_KiB(unsigned long long count) {
    return static_cast<std::size_t>(count) << 10;
}
constexpr std::size_t operator""_MiB(unsigned long long count) {
    return static_cast<std::size_t>(count) << 20;
}
constexpr std::size_t operator""_GiB(unsigned long long count) {
    return static_cast<std::size_t>(count) << 30;
}

} // namespace literals
} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail {

constexpr std::size_t divide_up(std::size_t value, std::size_t by) noexcept { return (value + by - 1) / by; }
/// The smallest multiple of `to` that is not below `value`.
constexpr std::size_t round_up(std::size_t value, std::size_t to) noexcept {
    return divide_up(value, to) * to;
}

/// Writes an integer as little-endian bytes: one store.
template <class Integer> constexpr void put(std::byte* to, Integer value) noexcept {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

/// Reads an integer of little-endian bytes: one load.
template <class Integer> constexpr Integer get(std::byte const* from) noexcept {
    Integer value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
        value =
            static_cast<Integer>(value | static_cast<Integer>(std::to_integer<Integer>(from[i]) << (8 * i)));
    return value;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_BYTES_HPP
