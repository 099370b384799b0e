// herring: on a GPU: the k-way sum, packing, staging and latency, beside what the device's own copies reach in the same run.
// SPDX-License-Identifier: Apache-2.0
//
//   nvcc -std=c++20 -O2 -arch=sm_90 -Iinclude bench/gpu_bench.cu -o build/gpu_bench && build/gpu_bench [folder of the tables]
//
// Needs the CUDA toolkit alone. Times are by events of the device, best of 5; bandwidths in GB/s of bytes read and written.
#include "herring/gpu/cuda_runtime.cuh"
#include "herring/herring.hpp"
#include "herring/intra_node/nvlink.cuh"
#include "herring/intra_node/pcie_staging.cuh"
#include "herring/transport/inproc.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <cuda_runtime.h>

using namespace herring;

namespace {

void must(cudaError_t result, char const* what) {
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

cudaStream_t queue;

/// Seconds that `work`, which puts something into `queue`, takes there: best of 5, each the mean of `times`.
template <class Work> double seconds(int times, Work&& work) {
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "cudaEventCreate");
    must(cudaEventCreate(&to), "cudaEventCreate");
    work();
    must(cudaStreamSynchronize(queue), "warm-up");
    float best = 1e30f;
    for (int round = 0; round < 5; ++round) {
        must(cudaEventRecord(from, queue), "cudaEventRecord");
        for (int i = 0; i < times; ++i) work();
        must(cudaEventRecord(to, queue), "cudaEventRecord");
        must(cudaEventSynchronize(to), "cudaEventSynchronize");
        float ms = 0;
        must(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
        best = std::min(best, ms / static_cast<float>(times));
    }
    must(cudaEventDestroy(from), "cudaEventDestroy");
    must(cudaEventDestroy(to), "cudaEventDestroy");
    return static_cast<double>(best) * 1e-3;
}

double gbs(double bytes, double in) { return bytes / in * 1e-9; }

std::vector<std::size_t> table(std::string const& path) {
    std::ifstream file(path);
    std::string line;
    std::vector<std::size_t> sizes;
    std::getline(file, line);
    while (std::getline(file, line)) sizes.push_back(std::stoul(line.substr(line.rfind(',') + 1)));
    return sizes;
}

// One device: what it copies, to hold the others against. Bytes read and written.
double copy_bandwidth(std::size_t bytes) {
    buffer from(bytes), to(bytes);
    return gbs(2.0 * static_cast<double>(bytes), seconds(10, [&] {
                   must(cudaMemcpyAsync(to.at, from.at, bytes, cudaMemcpyDeviceToDevice, queue), "copy");
               }));
}

template <class T> void sums(char const* type, int processors) {
    for (std::size_t const bytes :
         {std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{64} << 20, std::size_t{256} << 20}) {
        double const copies = copy_bandwidth(bytes);
        for (int const k : {2, 4, 8}) {
            buffer from(bytes * static_cast<std::size_t>(k)), to(bytes);
            gpu::fold_work work;
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
            std::printf("sum      %-9s %5zu MiB  k = %d  %8.1f GB/s  %5.1f %% of the copy's %.1f\n", type,
                        bytes >> 20, k, reached, 100 * reached / copies, copies);
        }
    }
}

void packing(world& alone, char const* model, std::string const& path) {
    std::vector<std::size_t> const sizes = table(path);
    if (sizes.empty()) {
        std::printf("pack     %s: no table %s\n", model, path.c_str());
        return;
    }
    std::size_t bytes = 0, room = 0;
    for (std::size_t const n : sizes) bytes += n * 4, room += (n * 4 + 511) / 512 * 512;
    buffer apart(room), packed(room);
    std::vector<gpu::copy_item> in, out;
    std::size_t here = 0, there = 0;
    for (std::size_t const n : sizes) {
        in.push_back({packed.at + there, apart.at + here, n * 4});
        out.push_back({apart.at + here, packed.at + there, n * 4});
        here += (n * 4 + 511) / 512 * 512; // as allocators place tensors
        there += (n * 4 + 63) / 64 * 64;   // as plans do
    }
    gpu::cuda_runtime device(alone);
    gpu::cuda_runtime::batch batch_in(device, in.size()), batch_out(device, out.size());
    double const copies = copy_bandwidth(bytes);
    auto const row = [&](char const* what, double took) {
        double const reached = gbs(2.0 * static_cast<double>(bytes), took);
        std::printf("%-8s %-11s %4zu tensors  %8.1f us  %8.1f GB/s  %5.1f %% of the copy's %.1f\n", what,
                    model, sizes.size(), took * 1e6, reached, 100 * reached / copies, copies);
    };
    row("pack", seconds(20, [&] { device.copy_many(queue, batch_in, 0, in); }));
    row("unpack", seconds(20, [&] { device.copy_many(queue, batch_out, 0, out); }));
    row("one each", seconds(20, [&] {
            for (gpu::copy_item const& c : in)
                must(cudaMemcpyAsync(c.to, c.from, c.bytes, cudaMemcpyDeviceToDevice, queue), "copy");
        }));
    if (device.failed() != nullptr) std::printf("pack     %s\n", device.failed()->message().c_str());
}

// Steps of a rank alone: to the host, summed there, and back. Seconds by the host's clock, to the end of the last copy.
template <class Node> void steps(world& alone, char const* what, std::size_t bytes, double bound) {
    std::size_t const tensors = 32;
    reducer<float, transport::inproc, Node, fusion::per_tensor> reduce(
        alone, layout::of(std::vector<std::size_t>(tensors, bytes / tensors / 4)));
    double best = 1e30;
    for (int round = 0; round < 7; ++round) {
        must(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
        auto const from = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < tensors; ++i) reduce.ready(i, queue);
        reduce.wait(queue);
        must(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
        std::chrono::duration<double> const took = std::chrono::steady_clock::now() - from;
        if (round > 1) best = std::min(best, took.count());
    }
    double const reached = gbs(static_cast<double>(bytes), best);
    std::printf(
        "step     %-12s %5zu MiB  %8.1f us  %7.1f GB/s each way  %5.1f %% of the slower pinned copy's %.1f\n",
        what, bytes >> 20, best * 1e6, reached, 100 * reached / bound, bound);
}

// One small bucket: launched, and from a graph. By the host's clock, launch to end.
void latency(int processors) {
    buffer from(2 << 16), to(1 << 16);
    gpu::fold_work work;
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

} // namespace

int main(int argc, char** argv) {
    std::string const folder = argc > 1 ? argv[1] : "bench/data";
    try {
        world alone;
        int const device = gpu::use_device(alone);
        cudaDeviceProp facts;
        must(cudaGetDeviceProperties(&facts, device), "cudaGetDeviceProperties");
        std::printf("device   %s, %d multiprocessors\n", facts.name, facts.multiProcessorCount);
        must(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), "cudaStreamCreate");

        std::size_t const large = std::size_t{256} << 20;
        std::printf("copy     device, 256 MiB          %8.1f GB/s read and written\n", copy_bandwidth(large));
        double to_host = 0, to_device = 0;
        {
            buffer there(large);
            pinned here(large);
            to_host = gbs(static_cast<double>(large), seconds(5, [&] {
                              must(cudaMemcpyAsync(here.at, there.at, large, cudaMemcpyDeviceToHost, queue),
                                   "copy");
                          }));
            to_device = gbs(static_cast<double>(large), seconds(5, [&] {
                                must(cudaMemcpyAsync(there.at, here.at, large, cudaMemcpyHostToDevice, queue),
                                     "copy");
                            }));
        }
        std::printf("copy     pinned, 256 MiB          %8.1f GB/s to the host, %.1f to the device\n", to_host,
                    to_device);
        sums<float>("float", facts.multiProcessorCount);
        sums<bfloat16>("bfloat16", facts.multiProcessorCount);
        packing(alone, "resnet50", folder + "/resnet50.csv");
        packing(alone, "bert_large", folder + "/bert_large.csv");
        double const slower = std::min(to_host, to_device);
        for (std::size_t const mib : {64, 256})
            steps<intra_node::pcie_staging>(alone, "pcie_staging", mib << 20, slower);
        latency(facts.multiProcessorCount);
        must(cudaStreamDestroy(queue), "cudaStreamDestroy");
    } catch (error const& why) {
        std::fprintf(stderr, "%s\n", why.what());
        return 1;
    }
    return 0;
}
