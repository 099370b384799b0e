// herring: how kernels divide elements: slices of local ranks, and accesses of 16 bytes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_SLICES_HPP
#define HERRING_GPU_KERNEL_SLICES_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace HERRING_NAMESPACE::gpu {

/// Bytes that a thread of a kernel reads or writes at a time.
inline constexpr std::size_t access_bytes = 16;

/// Every `stride`-th chunk of a range, from chunk `first` on, in elements.
struct slices {
    std::size_t offset = 0;   ///< of chunk 0, from the start of the buffers
    std::size_t elements = 0; ///< of all chunks
    std::size_t chunk = 1;    ///< all chunks but the last have this many
    std::uint32_t first = 0;
    std::uint32_t stride = 1;

    /// Number of slices.
    HERRING_HOST_DEVICE constexpr std::size_t count() const noexcept {
        std::size_t const chunks = (elements + chunk - 1) / chunk;
        return first < chunks ? (chunks - first + stride - 1) / stride : 0;
    }
    /// Offset of slice j from the start of the buffers; j < count().
    HERRING_HOST_DEVICE constexpr std::size_t begin(std::size_t j) const noexcept {
        return offset + (first + j * stride) * chunk;
    }
    /// Elements of slice j; j < count().
    HERRING_HOST_DEVICE constexpr std::size_t size(std::size_t j) const noexcept {
        std::size_t const left = elements - (first + j * stride) * chunk;
        return left < chunk ? left : chunk;
    }
};

/// A run of elements: `head` elements one by one, `vectors` accesses of 16 bytes, and the rest one by one.
struct vector_cut {
    std::size_t head = 0;
    std::size_t vectors = 0;

    HERRING_HOST_DEVICE constexpr std::size_t tail(std::size_t count, std::size_t lanes) const noexcept {
        return count - head - vectors * lanes;
    }
};

/// Cuts a run of `count` elements that starts at `address`, aligned for its elements.
///
/// `fits`: all other buffers of the kernel are `aligned_alike`. If not, all elements go one by one.
HERRING_HOST_DEVICE constexpr vector_cut cut_for_vectors(std::uintptr_t address, std::size_t count,
                                                         std::size_t element_bytes, bool fits) noexcept {
    if (!fits) return {count, 0};
    std::size_t const over = address % access_bytes;
    std::size_t const head = over == 0 ? 0 : (access_bytes - over) / element_bytes;
    if (head >= count) return {count, 0};
    return {head, (count - head) / (access_bytes / element_bytes)};
}

/// True if two buffers reach a 16-byte boundary at the same element. They start at addresses `a` and `b`,
/// with elements of `a_bytes` and `b_bytes`.
HERRING_HOST_DEVICE constexpr bool aligned_alike(std::uintptr_t a, std::size_t a_bytes, std::uintptr_t b,
                                                 std::size_t b_bytes) noexcept {
    std::size_t const over = a % access_bytes;
    std::size_t const head = over == 0 ? 0 : (access_bytes - over) / a_bytes;
    return (b + head * b_bytes) % access_bytes == 0;
}

} // namespace HERRING_NAMESPACE::gpu

#if defined(__CUDA_ARCH__)
#define HERRING_UNROLL _Pragma("unroll")
#else
#define HERRING_UNROLL
#endif

namespace HERRING_NAMESPACE::gpu::detail {

/// 16 bytes, moved by one access.
struct alignas(access_bytes) vec16 {
    std::uint32_t words[4];
};

HERRING_HOST_DEVICE inline vec16 load_vec16(void const* from) noexcept {
#if defined(__CUDA_ARCH__)
    // Streaming load: the data is read once. Not the read-only path: a target may be a source.
    uint4 const got = __ldcs(static_cast<uint4 const*>(from));
    return {{got.x, got.y, got.z, got.w}};
#else
    vec16 result;
    std::memcpy(&result, __builtin_assume_aligned(from, access_bytes), sizeof result);
    return result;
#endif
}
HERRING_HOST_DEVICE inline void store_vec16(void* to, vec16 const& value) noexcept {
#if defined(__CUDA_ARCH__)
    __stwb(static_cast<uint4*>(to),
           make_uint4(value.words[0], value.words[1], value.words[2], value.words[3]));
#else
    std::memcpy(__builtin_assume_aligned(to, access_bytes), &value, sizeof value);
#endif
}

HERRING_HOST_DEVICE inline std::uintptr_t address(void const* of) noexcept {
    return reinterpret_cast<std::uintptr_t>(of);
}

} // namespace HERRING_NAMESPACE::gpu::detail

#endif // HERRING_GPU_KERNEL_SLICES_HPP
