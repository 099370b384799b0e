// herring: the kernel of the k-way sum, and how it is launched.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNELS_CUH
#define HERRING_GPU_KERNELS_CUH

#include "herring/gpu/finite.hpp"
#include "herring/gpu/fold.hpp"

#include <algorithm>
#include <cstddef>

#include <cub/block/block_reduce.cuh>
#include <cuda_runtime_api.h>

namespace herring::gpu {

inline constexpr int threads_of_block = 512;

/// One k-way sum. Grid: x over the elements of a slice, y over slices.
///
/// Cost: bytes of all sources read and of all targets written, once, 16 at a time; no shared memory.
template <class Update, class T, bool Wide, int K, class Finish>
__global__ void __launch_bounds__(threads_of_block)
    fold_kernel(fold_work const __grid_constant__ work, Finish const __grid_constant__ finish) {
    fold_share<Update, T, Wide, K, Finish> const share{work, finish};
    std::size_t const thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    std::size_t const threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t j = blockIdx.y; j < work.where.count(); j += gridDim.y) share.run(j, thread, threads);
}

namespace detail {
template <class Update, class T, bool Wide, int K, class Finish>
cudaError_t launch(fold_share<Update, T, Wide, K, Finish> const& share, cudaStream_t in,
                   int processors) noexcept {
    std::size_t const slices = share.work.where.count();
    if (slices == 0) return cudaSuccess;
    constexpr std::size_t a_block = threads_of_block * fold_share<Update, T, Wide, K, Finish>::lanes *
                                    fold_share<Update, T, Wide, K, Finish>::depth;
    // As many blocks as fit the device at once, or fewer where there is less to do.
    std::size_t const most = std::size_t{4} * static_cast<std::size_t>(processors);
    std::size_t const useful = (share.work.where.size(0) + a_block - 1) / a_block;
    std::size_t const y = std::min<std::size_t>(slices, std::min<std::size_t>(most, 65535));
    std::size_t const x = std::max<std::size_t>(1, std::min(useful, most / y));
    void* arguments[] = {const_cast<fold_work*>(&share.work), const_cast<Finish*>(&share.finish)};
    return cudaLaunchKernel(fold_kernel<Update, T, Wide, K, Finish>,
                            dim3(static_cast<unsigned>(x), static_cast<unsigned>(y)), dim3(threads_of_block),
                            arguments, 0, in);
}
} // namespace detail

/// Puts a k-way sum into a stream of the current device, which has `processors` multiprocessors.
template <class Update, class T>
cudaError_t fold_on_device(fold_work const& work, cudaStream_t in, int processors) noexcept {
    cudaError_t result = cudaSuccess;
    detail::choose_share<Update, T>(
        work, [&](auto const& share) { result = detail::launch(share, in, processors); });
    return result;
}

/// Adds to `*total`, in device memory, how many elements are infinite or NaN.
template <class T>
__global__ void __launch_bounds__(threads_of_block)
    finite_kernel(T const* from, std::size_t count, unsigned long long* total) {
    using reduce = cub::BlockReduce<unsigned long long, threads_of_block>;
    __shared__ typename reduce::TempStorage room;
    std::size_t const thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    unsigned long long const found =
        reduce(room).Sum(count_not_finite(from, count, thread, std::size_t{gridDim.x} * blockDim.x));
    if (threadIdx.x == 0 && found > 0) atomicAdd(total, found);
}

/// Puts that into a stream of the current device, which has `processors` multiprocessors.
template <class T>
cudaError_t count_on_device(T const* from, std::size_t count, unsigned long long* total, cudaStream_t in,
                            int processors) noexcept {
    if (count == 0) return cudaSuccess;
    std::size_t const useful = (count * sizeof(T) / access_bytes + threads_of_block - 1) / threads_of_block;
    std::size_t const blocks =
        std::clamp<std::size_t>(useful, 1, std::size_t{4} * static_cast<std::size_t>(processors));
    void* arguments[] = {&from, &count, &total};
    return cudaLaunchKernel(finite_kernel<T>, dim3(static_cast<unsigned>(blocks)), dim3(threads_of_block),
                            arguments, 0, in);
}

} // namespace herring::gpu

#endif // HERRING_GPU_KERNELS_CUH
