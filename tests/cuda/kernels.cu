// herring: the k-way sum for every element type, to look at its code.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernels.cuh"
#include "herring/update/average.hpp"
#include "herring/update/max.hpp"
#include "herring/update/sum.hpp"

#if defined(CONTROL_POINTER) // what the test must find
using rule = float4 (*)(float4, float4);
__global__ void by_pointer(rule combine, float4* to, float4 const* from) {
    __stwb(to + threadIdx.x, combine(__ldcs(from), __ldcs(from + threadIdx.x)));
}
#elif defined(CONTROL_SINGLE)
__global__ void one_by_one(float* to, float const* from) { to[threadIdx.x] += from[threadIdx.x]; }
#else
namespace herring::gpu {
#define HERRING_SUM(Update, T)                                                                               \
    template cudaError_t fold_on_device<update::Update, T>(fold_work const&, cudaStream_t, int) noexcept;
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
} // namespace herring::gpu
#endif
