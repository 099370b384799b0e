// herring: the kernels of the k-way sum, of batched copies and of the inspection, and their launches.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_KERNELS_CUH
#define HERRING_GPU_KERNEL_KERNELS_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/batched_copy.hpp"
#include "herring/gpu/kernel/fold.hpp"
#include "herring/gpu/kernel/inspection.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include <cub/block/block_reduce.cuh>
#include <cuda_runtime_api.h>

namespace HERRING_NAMESPACE::gpu {

inline constexpr int threads_of_block = 512;

/// Kernel of one k-way sum. Grid: x over the elements of a slice, y over slices.
///
/// Cost: each source read and each target written once, 16 bytes at a time; no shared memory.
template <class Update, class Element, bool Wide, int SourceCount, class Finish>
__global__ void __launch_bounds__(threads_of_block)
    fold_kernel(fold_args const __grid_constant__ work, Finish const __grid_constant__ finish) {
    fold_share<Update, Element, Wide, SourceCount, Finish> const share{work, finish};
    std::size_t const thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    std::size_t const threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t j = blockIdx.y; j < work.where.count(); j += gridDim.y) share.run(j, thread, threads);
}

/// Kernel of many copies. Grid: x over the chunks of all copies.
///
/// Cost: each byte read and written once, as `copy_chunk` says; no shared memory.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    batched_copy_kernel(listed_copy const* list, std::size_t count, std::size_t chunks) {
    static_assert(Threads % 32 == 0, "copy_chunk shuffles within whole warps");
    for (std::size_t c = blockIdx.x; c < chunks; c += gridDim.x)
        copy_chunk(list, count, c, threadIdx.x, Threads);
}

namespace detail {
/// Returns the kernel's resident blocks per multiprocessor of the current device. Queried once per device.
template <auto Kernel> std::size_t blocks_at_once() noexcept {
    static std::atomic<int> known[64];
    int device = 0, blocks = 0;
    if (cudaGetDevice(&device) != cudaSuccess) device = 0;
    // Devices 64 apart share an entry: devices of one process are almost always of one kind.
    std::atomic<int>& kept = known[device % 64];
    if ((blocks = kept.load(std::memory_order_relaxed)) > 0) return static_cast<std::size_t>(blocks);
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Kernel, threads_of_block, 0) != cudaSuccess) {
        (void)cudaGetLastError(); // the launch reports the error
        return 1;
    }
    if (blocks < 1) return 1;
    kept.store(blocks, std::memory_order_relaxed);
    return static_cast<std::size_t>(blocks);
}

template <class Update, class Element, bool Wide, int SourceCount, class Finish>
cudaError_t launch(fold_share<Update, Element, Wide, SourceCount, Finish> const& share, cudaStream_t in,
                   int processors) noexcept {
    std::size_t const slices = share.work.where.count();
    if (slices == 0) return cudaSuccess;
    constexpr std::size_t a_block = threads_of_block *
                                    fold_share<Update, Element, Wide, SourceCount, Finish>::lanes *
                                    fold_share<Update, Element, Wide, SourceCount, Finish>::depth;
    // As many blocks as the device holds at once, or fewer for little work.
    std::size_t const most = blocks_at_once<fold_kernel<Update, Element, Wide, SourceCount, Finish>>() *
                             static_cast<std::size_t>(processors);
    std::size_t const useful = (share.work.where.size(0) + a_block - 1) / a_block;
    std::size_t const y = std::min<std::size_t>(slices, std::min<std::size_t>(most, 65535));
    std::size_t const x = std::max<std::size_t>(1, std::min(useful, most / y));
    void* arguments[] = {const_cast<fold_args*>(&share.work), const_cast<Finish*>(&share.finish)};
    return cudaLaunchKernel(fold_kernel<Update, Element, Wide, SourceCount, Finish>,
                            dim3(static_cast<unsigned>(x), static_cast<unsigned>(y)), dim3(threads_of_block),
                            arguments, 0, in);
}
} // namespace detail

/// Enqueues a k-way sum on a stream of the current device, which has `processors` multiprocessors.
template <class Update, class Element>
cudaError_t fold_on_device(fold_args const& work, cudaStream_t in, int processors) noexcept {
    cudaError_t result = cudaSuccess;
    detail::choose_share<Update, Element>(
        work, [&](auto const& share) { result = detail::launch(share, in, processors); });
    return result;
}

/// Loads the kernel of a sum like `like` on the current device. CUDA may wait for all streams of the device
/// to do so.
template <class Update, class Element> void load_fold(fold_args const& like) noexcept {
    detail::choose_share<Update, Element>(
        like, []<bool Wide, int SourceCount, class Finish>(
                  fold_share<Update, Element, Wide, SourceCount, Finish> const&) {
            (void)detail::blocks_at_once<fold_kernel<Update, Element, Wide, SourceCount, Finish>>();
        });
}

/// Enqueues `count` > 0 copies. Their list lies on the device and has `chunks` chunks in all.
inline cudaError_t copy_on_device(listed_copy const* list, std::size_t count, std::size_t chunks,
                                  cudaStream_t in, int processors) noexcept {
    if (chunks == 0) return cudaSuccess;
    std::size_t const most = detail::blocks_at_once<batched_copy_kernel<threads_of_block>>() *
                             static_cast<std::size_t>(processors);
    void* arguments[] = {&list, &count, &chunks};
    return cudaLaunchKernel(batched_copy_kernel<threads_of_block>,
                            dim3(static_cast<unsigned>(std::min(chunks, most))), dim3(threads_of_block),
                            arguments, 0, in);
}

/// Blocks of an inspection; the same on every device, so that squares are added in the same order.
inline constexpr int blocks_of_inspection = 512;

/// Device memory of inspections; zeroed before the first.
struct inspection_scratch {
    inspection_result total;
    inspection_result of_block[blocks_of_inspection];
};

namespace detail {
struct join_findings {
    __device__ inspection_result operator()(inspection_result const& a, inspection_result const& b) const {
        inspection_result sum;
        sum.not_finite = a.not_finite + b.not_finite;
        sum.squares = a.squares + b.squares;
        return sum;
    }
};
} // namespace detail

/// First kernel of an inspection: the findings of each block.
template <class Element>
__global__ void __launch_bounds__(threads_of_block)
    inspect_kernel(Element const* from, std::size_t count, inspection_result* of_block) {
    using reduce = cub::BlockReduce<inspection_result, threads_of_block>;
    __shared__ typename reduce::TempStorage room;
    std::size_t const thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    inspection_result const found = reduce(room).Reduce(
        inspect(from, count, thread, std::size_t{gridDim.x} * blockDim.x), detail::join_findings{});
    if (threadIdx.x == 0) of_block[blockIdx.x] = found;
}

/// Second kernel: one block combines the findings. Counts add up over launches, squares do not.
template <int Blocks> __global__ void __launch_bounds__(Blocks) join_kernel(inspection_scratch* all) {
    using reduce = cub::BlockReduce<inspection_result, Blocks>;
    __shared__ typename reduce::TempStorage room;
    inspection_result const found = reduce(room).Reduce(all->of_block[threadIdx.x], detail::join_findings{});
    if (threadIdx.x != 0) return;
    all->total.not_finite += found.not_finite;
    all->total.squares = found.squares;
}

/// Enqueues both kernels on a stream of the current device.
template <class Element>
cudaError_t inspect_on_device(Element const* from, std::size_t count, inspection_scratch& found,
                              cudaStream_t in) noexcept {
    inspection_result* of_block = found.of_block;
    void* arguments[] = {&from, &count, &of_block};
    cudaError_t const result = cudaLaunchKernel(inspect_kernel<Element>, dim3(blocks_of_inspection),
                                                dim3(threads_of_block), arguments, 0, in);
    if (result != cudaSuccess) return result;
    inspection_scratch* all = &found;
    void* of_join[] = {&all};
    return cudaLaunchKernel(join_kernel<blocks_of_inspection>, dim3(1), dim3(blocks_of_inspection), of_join,
                            0, in);
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_KERNELS_CUH
