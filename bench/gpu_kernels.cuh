// herring: kernels on one GPU beside the device's own copies: the k-way sum, packing, latency. For gpu_bench.cu.
// SPDX-License-Identifier: Apache-2.0
//
// Times are by events of the device, median of 5; latencies by the host's clock. Bandwidths in GB/s of bytes read and written.
#ifndef HERRING_BENCH_GPU_KERNELS_CUH
#define HERRING_BENCH_GPU_KERNELS_CUH

#include "harness.hpp"

#include "herring/gpu/cuda/cuda_runtime.cuh"
#include "herring/herring.hpp"
#include "herring/transport/tcp.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_memcpy.cuh>
#include <cuda_runtime.h>

namespace bench {

using namespace herring;

inline void must(cudaError_t result, char const* what) {
    if (result == cudaSuccess) return;
    std::fprintf(stderr, "gpu_bench: %s: %s\n", what, cudaGetErrorString(result));
    std::exit(1);
}

struct buffer {
    std::byte* at = nullptr;
    explicit buffer(std::size_t bytes) {
        must(cudaMalloc(&at, bytes), "cudaMalloc");
        must(cudaMemset(at, 0, bytes), "cudaMemset");
    }
    buffer(buffer const&) = delete;
    ~buffer() { (void)cudaFree(at); }
};
struct pinned {
    std::byte* at = nullptr;
    explicit pinned(std::size_t bytes) { must(cudaMallocHost(&at, bytes), "cudaMallocHost"); }
    pinned(pinned const&) = delete;
    ~pinned() { (void)cudaFreeHost(at); }
};

/// The stream of this rank, or of the program alone.
inline thread_local cudaStream_t queue = nullptr;

/// Seconds that `work`, which puts something into `queue`, takes there: median of 5, each the mean of `times`.
template <class Work> double seconds(int times, Work&& work) {
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "cudaEventCreate");
    must(cudaEventCreate(&to), "cudaEventCreate");
    work();
    must(cudaStreamSynchronize(queue), "warm-up");
    std::array<float, 5> all{};
    for (float& took : all) {
        must(cudaEventRecord(from, queue), "cudaEventRecord");
        for (int i = 0; i < times; ++i) work();
        must(cudaEventRecord(to, queue), "cudaEventRecord");
        must(cudaEventSynchronize(to), "cudaEventSynchronize");
        must(cudaEventElapsedTime(&took, from, to), "cudaEventElapsedTime");
    }
    must(cudaEventDestroy(from), "cudaEventDestroy");
    must(cudaEventDestroy(to), "cudaEventDestroy");
    std::sort(all.begin(), all.end());
    return static_cast<double>(all[2]) * 1e-3 / times;
}

inline double gbs(double bytes, double in) { return bytes / in * 1e-9; }

// One device: what it copies, to hold the others against. Bytes read and written.
inline double copy_bandwidth(std::size_t bytes) {
    buffer from(bytes), to(bytes);
    return gbs(2.0 * static_cast<double>(bytes), seconds(10, [&] {
                   must(cudaMemcpyAsync(to.at, from.at, bytes, cudaMemcpyDeviceToDevice, queue), "copy");
               }));
}

// The same sum with CUB's block load and store, for whole tiles: what the kernel's own accesses are held against.
template <class T, int K>
__global__ void __launch_bounds__(gpu::threads_of_block)
    cub_sum(gpu::fold_args const __grid_constant__ work, std::size_t tiles, float scale) {
    constexpr int items = static_cast<int>(gpu::access_bytes / sizeof(T)) * 2;
    constexpr std::size_t tile = std::size_t{gpu::threads_of_block} * items;
    using load = cub::BlockLoad<T, gpu::threads_of_block, items, cub::BLOCK_LOAD_VECTORIZE>;
    using store = cub::BlockStore<T, gpu::threads_of_block, items, cub::BLOCK_STORE_VECTORIZE>;
    for (std::size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        accumulator<T> total[items];
        T some[items];
        for (int s = 0; s < K; ++s) {
            load().Load(static_cast<T const*>(work.sources[s]) + t * tile, some);
            for (int i = 0; i < items; ++i) {
                auto const value = static_cast<accumulator<T>>(some[i]);
                total[i] = s == 0 ? value : total[i] + value;
            }
        }
        for (int i = 0; i < items; ++i) some[i] = gpu::stored<T>(total[i] * scale);
        store().Store(static_cast<T*>(work.targets[0]) + t * tile, some);
    }
}
template <class T, int K> void launch_cub_sum(gpu::fold_args const& work, int processors) {
    std::size_t const tile = std::size_t{gpu::threads_of_block} * gpu::access_bytes / sizeof(T) * 2;
    std::size_t const tiles = work.where.elements / tile;
    auto const blocks =
        static_cast<unsigned>(std::min<std::size_t>(tiles, 4u * static_cast<unsigned>(processors)));
    cub_sum<T, K><<<blocks, gpu::threads_of_block, 0, queue>>>(work, tiles, 1.0f / K);
    must(cudaGetLastError(), "cub_sum");
}

template <class T> void sums(char const* type, int processors) {
    for (std::size_t const bytes :
         {std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{64} << 20, std::size_t{256} << 20}) {
        double const copies = copy_bandwidth(bytes);
        for (int const k : {2, 4, 8}) {
            buffer from(bytes * static_cast<std::size_t>(k)), to(bytes);
            gpu::fold_args work;
            for (int s = 0; s < k; ++s) work.sources[s] = from.at + bytes * static_cast<std::size_t>(s);
            work.targets[0] = to.at;
            work.source_count = k;
            work.target_count = 1;
            work.ranks = k;
            work.where = {0, bytes / sizeof(T), bytes / sizeof(T), 0, 1};
            double const reached =
                gbs(static_cast<double>(bytes) * (k + 1), seconds(10, [&] {
                        must(gpu::fold_on_device<update::average, T>(work, queue, processors), "sum");
                    }));
            double const by_cub = gbs(static_cast<double>(bytes) * (k + 1), seconds(10, [&] {
                                          k == 2   ? launch_cub_sum<T, 2>(work, processors)
                                          : k == 4 ? launch_cub_sum<T, 4>(work, processors)
                                                   : launch_cub_sum<T, 8>(work, processors);
                                      }));
            auto const row = [&](char const* how, double speed) {
                std::printf("sum      %-9s %5zu MiB  k = %d  %-19s %8.1f GB/s  %5.1f %% of the copy's %.1f\n",
                            type, bytes >> 20, k, how, speed, 100 * speed / copies, copies);
            };
            row("", reached);
            row("cub block load/store", by_cub);
        }
    }
}

// The same copies by CUB, from a list on the device: what Herring's kernel is held against.
class packing_by_cub {
  public:
    explicit packing_by_cub(std::vector<gpu::copy_item> const& copies)
        : count_(copies.size()), list_(copies.size() * (2 * sizeof(void*) + sizeof(std::size_t))),
          needed_(needed()), temporary_(needed_) {
        std::vector<void const*> from;
        std::vector<void*> to;
        std::vector<std::size_t> bytes;
        for (gpu::copy_item const& c : copies)
            from.push_back(c.from), to.push_back(c.to), bytes.push_back(c.bytes);
        must(cudaMemcpy(from_(), from.data(), count_ * sizeof(void*), cudaMemcpyHostToDevice), "cudaMemcpy");
        must(cudaMemcpy(to_(), to.data(), count_ * sizeof(void*), cudaMemcpyHostToDevice), "cudaMemcpy");
        must(cudaMemcpy(bytes_(), bytes.data(), count_ * sizeof(std::size_t), cudaMemcpyHostToDevice),
             "cudaMemcpy");
    }
    void operator()() {
        must(cub::DeviceMemcpy::Batched(temporary_.at, needed_, from_(), to_(), bytes_(),
                                        static_cast<std::int64_t>(count_), queue),
             "cub::DeviceMemcpy::Batched");
    }

  private:
    void const** from_() const { return reinterpret_cast<void const**>(list_.at); }
    void** to_() const { return reinterpret_cast<void**>(list_.at) + count_; }
    std::size_t* bytes_() const { return reinterpret_cast<std::size_t*>(to_() + count_); }
    std::size_t needed() const {
        std::size_t bytes = 0;
        must(cub::DeviceMemcpy::Batched(nullptr, bytes, from_(), to_(), bytes_(),
                                        static_cast<std::int64_t>(count_)),
             "cub::DeviceMemcpy::Batched");
        return bytes;
    }
    std::size_t count_;
    buffer list_;
    std::size_t needed_;
    buffer temporary_;
};

inline void packing(world& alone, char const* model, std::string const& path) {
    std::vector<std::size_t> const sizes = read_table(path);
    std::size_t bytes = 0, room = 0;
    for (std::size_t const n : sizes) bytes += n * 4, room += (n * 4 + 511) / 512 * 512;
    buffer apart(room + 16), packed(room);
    gpu::cuda_runtime device(alone);
    std::size_t const count = sizes.size();
    gpu::cuda_runtime::batch batch(device, count);
    // Tensors this many bytes off the boundary where an allocator places them.
    auto const list_of = [&](bool unpack, std::size_t off) {
        std::vector<gpu::copy_item> list;
        std::size_t here = off, there = 0;
        for (std::size_t const n : sizes) {
            std::byte *const tensor = apart.at + here, *const place = packed.at + there;
            list.push_back(unpack ? gpu::copy_item{tensor, place, n * 4}
                                  : gpu::copy_item{place, tensor, n * 4});
            here += (n * 4 + 511) / 512 * 512; // as allocators place tensors
            there += (n * 4 + 63) / 64 * 64;   // as plans do
        }
        return list;
    };
    double const copies = copy_bandwidth(bytes);
    auto const row = [&](std::string const& what, double took) {
        double const reached = gbs(2.0 * static_cast<double>(bytes), took);
        std::printf("%-27s %-11s %4zu tensors  %8.1f us  %8.1f GB/s  %5.1f %% of the copy's %.1f\n",
                    what.c_str(), model, sizes.size(), took * 1e6, reached, 100 * reached / copies, copies);
    };
    auto const one_each = [](std::vector<gpu::copy_item> const& list) {
        return [&list] {
            for (gpu::copy_item const& c : list)
                must(cudaMemcpyAsync(c.to, c.from, c.bytes, cudaMemcpyDeviceToDevice, queue), "copy");
        };
    };
    for (bool const unpack : {false, true})
        for (std::size_t const off : {0u, 4u, 2u}) {
            std::vector<gpu::copy_item> const list = list_of(unpack, off);
            std::string const what = std::string(unpack ? "unpack" : "pack") +
                                     (off == 0 ? "" : ", " + std::to_string(off) + " bytes off");
            device.list(batch, 0, list);
            row(what, seconds(20, [&] { device.copy_many(queue, batch, 0, count); }));
            row(what + ", by CUB", seconds(20, packing_by_cub(list)));
            if (off == 0) row(what + ", one copy each", seconds(20, one_each(list)));
        }
    if (device.failed() != nullptr) std::printf("pack     %s\n", device.failed()->message().c_str());
}

// Copies between pinned memory and the device, both ways at once: GB/s each way.
inline double both_ways(std::size_t bytes) {
    buffer out(bytes), in(bytes);
    pinned from(bytes), to(bytes);
    cudaStream_t other;
    cudaEvent_t begun, ended;
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming), "cudaEventCreate");
    must(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming), "cudaEventCreate");
    double const took = seconds(1, [&] {
        must(cudaEventRecord(begun, queue), "cudaEventRecord");
        must(cudaStreamWaitEvent(other, begun, 0), "cudaStreamWaitEvent");
        must(cudaMemcpyAsync(to.at, out.at, bytes, cudaMemcpyDeviceToHost, queue), "copy");
        must(cudaMemcpyAsync(in.at, from.at, bytes, cudaMemcpyHostToDevice, other), "copy");
        must(cudaEventRecord(ended, other), "cudaEventRecord");
        must(cudaStreamWaitEvent(queue, ended, 0), "cudaStreamWaitEvent");
    });
    must(cudaStreamDestroy(other), "cudaStreamDestroy");
    must(cudaEventDestroy(begun), "cudaEventDestroy");
    must(cudaEventDestroy(ended), "cudaEventDestroy");
    return gbs(static_cast<double>(bytes), took);
}

// One small bucket of the caller's tensors, packed, summed and unpacked: by the host's clock, ready to end.
template <class Node> void small_bucket(world& alone, char const* what, std::size_t sets = 1) {
    std::size_t const tensors = 8, elements = 2048;
    reducer<float, transport::tcp, Node> reduce(alone,
                                                layout::of(std::vector<std::size_t>(tensors, elements)));
    buffer theirs(sets * tensors * elements * 4);
    std::vector<double> all, calls;
    for (int i = 0; i < 2000; ++i) {
        auto const start = std::chrono::steady_clock::now();
        for (std::size_t t = 0; t < tensors; ++t)
            reduce.ready(t,
                         device_span(reinterpret_cast<float*>(theirs.at) +
                                         (static_cast<std::size_t>(i) % sets * tensors + t) * elements,
                                     elements),
                         queue);
        reduce.wait(queue);
        std::chrono::duration<double> const called = std::chrono::steady_clock::now() - start;
        must(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
        std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
        if (i < 200) continue;
        all.push_back(took.count());
        calls.push_back(called.count());
    }
    std::sort(all.begin(), all.end());
    std::sort(calls.begin(), calls.end());
    std::printf("latency  bucket of 8 x 8 KiB, %-22s min %5.1f  median %5.1f  p99 %5.1f us; ready and wait "
                "return after %5.1f; "
                "%llu graphs launched\n",
                what, all.front() * 1e6, all[all.size() / 2] * 1e6, all[all.size() * 99 / 100] * 1e6,
                calls[calls.size() / 2] * 1e6,
                static_cast<unsigned long long>(reduce.intra_node().replays()));
}

// One small sum: launched, and from a graph. By the host's clock, launch to end.
inline void latency(int processors) {
    buffer from(2 << 16), to(1 << 16);
    gpu::fold_args work;
    work.sources[0] = from.at;
    work.sources[1] = from.at + (1 << 16);
    work.targets[0] = to.at;
    work.source_count = 2;
    work.target_count = 1;
    work.ranks = 2;
    work.where = {0, (1 << 16) / 4, (1 << 16) / 4, 0, 1};
    auto const sum = [&] {
        must(gpu::fold_on_device<update::average, float>(work, queue, processors), "sum");
    };
    cudaGraph_t graph;
    cudaGraphExec_t made;
    must(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    sum();
    must(cudaStreamEndCapture(queue, &graph), "cudaStreamEndCapture");
    must(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
    auto const timed = [&](char const* what, auto const& run) {
        std::vector<double> all;
        for (int i = 0; i < 2000; ++i) {
            auto const start = std::chrono::steady_clock::now();
            run();
            must(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
            std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
            if (i >= 200) all.push_back(took.count());
        }
        std::sort(all.begin(), all.end());
        std::printf("latency  sum of 2 x 64 KiB, %-7s  min %5.1f  median %5.1f  p99 %5.1f us\n", what,
                    all.front() * 1e6, all[all.size() / 2] * 1e6, all[all.size() * 99 / 100] * 1e6);
    };
    timed("stream", sum);
    timed("graph", [&] { must(cudaGraphLaunch(made, queue), "cudaGraphLaunch"); });
    must(cudaGraphExecDestroy(made), "cudaGraphExecDestroy");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

} // namespace bench

#endif // HERRING_BENCH_GPU_KERNELS_CUH
