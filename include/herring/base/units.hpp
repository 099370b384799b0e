// herring: byte units as literals, so that a policy's value reads as it is meant: 25_MiB.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_UNITS_HPP
#define HERRING_BASE_UNITS_HPP

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

#endif // HERRING_BASE_UNITS_HPP
