// herring: the arguments of a k-way sum on a device, and how its results are stored.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_FOLD_ARGS_HPP
#define HERRING_GPU_KERNEL_FOLD_ARGS_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/slices.hpp"
#include "herring/model/element.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::gpu {

/// Upper bound on the buffers that one kernel reads, and on those that it writes: one per local rank.
inline constexpr int most_buffers = 16;

/// Arguments of one k-way sum: target[t][i] = sources[0][i] ∘ sources[1][i] ∘ ..., for i in `where`.
///
/// Shape:    sources of elements; targets of elements, rounded once, or of accumulator<Element> if
///           `in_accumulator`. A target may be a source.
/// Lifetime: passed to kernels by value.
struct fold_args {
    void const* sources[most_buffers] = {};
    void* targets[most_buffers] = {};
    int source_count = 0;
    int target_count = 0;
    bool in_accumulator = false;
    int ranks = 0; ///< number of contributions, for `Update::finish`; 0: the result is not finished
    slices where{};
};

namespace detail {
// Returns the canonical quiet NaN for every NaN. Tests bits, because compilers differ in their arithmetic on
// NaN. No template for floats: nvcc 13.0 crashes on a bit_cast of a dependent type.
HERRING_HOST_DEVICE inline float canonical(float value) noexcept {
    bool const none = (__builtin_bit_cast(std::uint32_t, value) & 0x7fff'ffffu) > 0x7f80'0000u;
    return none ? __builtin_bit_cast(float, std::uint32_t{0x7fc0'0000u}) : value;
}
HERRING_HOST_DEVICE inline double canonical(double value) noexcept {
    bool const none =
        (__builtin_bit_cast(std::uint64_t, value) & 0x7fff'ffff'ffff'ffffu) > 0x7ff0'0000'0000'0000u;
    return none ? __builtin_bit_cast(double, std::uint64_t{0x7ff8'0000'0000'0000u}) : value;
}
template <class Integer> HERRING_HOST_DEVICE inline Integer canonical(Integer value) noexcept {
    return value;
}
} // namespace detail

/// The result of a sum as it is stored: rounded once, every NaN canonical, as on the host.
template <class Element> HERRING_HOST_DEVICE inline Element stored(accumulator<Element> value) noexcept {
    return static_cast<Element>(detail::canonical(value));
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_FOLD_ARGS_HPP
