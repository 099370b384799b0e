// herring: the 16-byte accesses of kernels, on a device and on the host.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_VEC16_HPP
#define HERRING_GPU_KERNEL_VEC16_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/slices.hpp"

#include <cstdint>
#include <cstring>

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
    // Streaming load, for data that is read once. Not the read-only path: a target may be a source.
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

#endif // HERRING_GPU_KERNEL_VEC16_HPP
