// herring: inspection of results on a device: elements that are not finite, and the sum of squares.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_INSPECTION_HPP
#define HERRING_GPU_KERNEL_INSPECTION_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/slices.hpp"
#include "herring/model/element.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace HERRING_NAMESPACE::gpu {

/// Findings of inspections.
struct inspection_result {
    std::uint64_t not_finite = 0; ///< infinite or NaN
    double squares = 0;           ///< sum of the squares of all elements; infinite or NaN if an element is

    friend bool operator==(inspection_result const&, inspection_result const&) = default;
};

namespace detail {
// True if all bits of the exponent are set. A test of bits, whatever the compiler's flags for floats.
HERRING_HOST_DEVICE inline bool not_finite(bfloat16 value) noexcept {
    return (value.bits & 0x7f80u) == 0x7f80u;
}
HERRING_HOST_DEVICE inline bool not_finite(float16 value) noexcept {
    return (value.bits & 0x7c00u) == 0x7c00u;
}
HERRING_HOST_DEVICE inline bool not_finite(float value) noexcept {
    return (__builtin_bit_cast(std::uint32_t, value) & 0x7f80'0000u) == 0x7f80'0000u;
}
HERRING_HOST_DEVICE inline bool not_finite(double value) noexcept {
    constexpr std::uint64_t ones = 0x7ff0'0000'0000'0000u;
    return (__builtin_bit_cast(std::uint64_t, value) & ones) == ones;
}
HERRING_HOST_DEVICE inline bool not_finite(std::int32_t) noexcept { return false; }
HERRING_HOST_DEVICE inline bool not_finite(std::int64_t) noexcept { return false; }
} // namespace detail

/// Returns the findings of one thread in its share of `count` elements. Share and order depend on neither the
/// device nor the address, which is aligned to 16 bytes.
///
/// Cost: each element read once, 16 bytes at a time; squares in double.
template <class Element>
HERRING_HOST_DEVICE inspection_result inspect(Element const* from, std::size_t count, std::size_t thread,
                                              std::size_t threads) noexcept {
    constexpr std::size_t lanes = access_bytes / sizeof(Element);
    vector_cut const cut = cut_for_vectors(detail::address(from), count, sizeof(Element), true);
    std::size_t const rest = cut.head + cut.vectors * lanes;
    inspection_result found;
    auto const look = [&found](Element const& value) {
        found.not_finite += detail::not_finite(value);
        auto const wide = static_cast<double>(static_cast<accumulator<Element>>(value));
        found.squares += wide * wide;
    };
    for (std::size_t i = thread; i < cut.head; i += threads) look(from[i]);
    for (std::size_t v = thread; v < cut.vectors; v += threads) {
        detail::vec16 const got = detail::load_vec16(from + cut.head + v * lanes);
        Element some[lanes];
        std::memcpy(static_cast<void*>(some), &got, sizeof some);
        HERRING_UNROLL
        for (std::size_t l = 0; l < lanes; ++l) look(some[l]);
    }
    for (std::size_t i = rest + thread; i < count; i += threads) look(from[i]);
    return found;
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_INSPECTION_HPP
