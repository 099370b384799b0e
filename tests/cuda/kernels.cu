// herring: the k-way sum for every element type, and the other kernels, to look at their code.
// SPDX-License-Identifier: Apache-2.0

#if defined(CONTROL_POINTER) // what the test must find
using rule = float4 (*)(float4, float4);
__global__ void by_pointer(rule combine, float4* to, float4 const* from) {
    __stwb(to + threadIdx.x, combine(__ldcs(from), __ldcs(from + threadIdx.x)));
}
#elif defined(CONTROL_SINGLE)
__global__ void one_by_one(float* to, float const* from) { to[threadIdx.x] += from[threadIdx.x]; }
#elif defined(CONTROL_LOADS)
__global__ void narrow_loads(uint4* to, unsigned const* from) {
    unsigned const v = from[threadIdx.x];
    __stwb(to + threadIdx.x, make_uint4(v, v, v, v));
}
#elif defined(CONTROL_STORES)
__global__ void narrow_stores(unsigned* to, uint4 const* from) {
    uint4 const v = __ldcs(from + threadIdx.x);
    to[threadIdx.x] = v.x + v.y + v.z + v.w;
}
#elif defined(CONTROL_FEW)
// As the sum of two, of which one is read by halves.
template <bool Wide, int K> __global__ void one_of_two(uint4* to, uint4 const* a, uint2 const* b) {
    uint4 const v = __ldcs(a + threadIdx.x);
    uint2 const w = __ldcs(b + threadIdx.x);
    __stwb(to + threadIdx.x, make_uint4(v.x + w.x, v.y + w.y, v.z, v.w));
}
template __global__ void one_of_two<false, 2>(uint4*, uint4 const*, uint2 const*);
#elif defined(CONTROL_COPY)
// As the batched copy, with one access in flight.
__global__ void batched_copy_kernel(uint4* to, uint4 const* from) {
    __stwb(to + threadIdx.x, __ldcs(from + threadIdx.x));
}
#else
#include "herring/gpu/kernel/kernels.cuh"
#include "herring/update/rules.hpp"

namespace herring::gpu {
#define HERRING_SUM(Update, T)                                                                               \
    template cudaError_t fold_on_device<update::Update, T>(fold_args const&, cudaStream_t, int) noexcept;
HERRING_SUM(sum, float)
HERRING_SUM(sum, double)
HERRING_SUM(sum, std::int32_t)
HERRING_SUM(sum, std::int64_t)
HERRING_SUM(sum, bfloat16)
HERRING_SUM(sum, float16)
HERRING_SUM(average, float)
HERRING_SUM(average, double)
HERRING_SUM(average, bfloat16)
HERRING_SUM(average, float16)
HERRING_SUM(max, float)
template __global__ void batched_copy_kernel<threads_of_block>(listed_copy const*, std::size_t, std::size_t);
template cudaError_t inspect_on_device<float>(float const*, std::size_t, inspection_scratch&,
                                              cudaStream_t) noexcept;
} // namespace herring::gpu
#endif
