// herring: intra_node::nccl over NCCL's calls: on GPUs with NCCL, one a rank; where there are none, over stand_in/.
// SPDX-License-Identifier: Apache-2.0
//
// The process that runs the tests calls nothing of CUDA: ranks are forked from it. Values are exact in any order of summing.
#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest/doctest.h"

#include "herring/herring.hpp"
#include "herring/intra_node/nccl.cuh"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda_runtime.h>

using namespace herring;

extern "C" int herring_stand_in_complaints() __attribute__((weak));

namespace {

using names = std::vector<std::string>;
using cut_small =
    gpu::basic_nccl<gpu::cuda_runtime, gpu::cuda_nccl,
                    gpu::peer_sums_tuning{.slot_count = 2, .split_bytes = 64_KiB, .inspect = true}>;

void must(cudaError_t result, char const* what) {
    if (result != cudaSuccess) throw error(errc::device, -1, -1, what, cudaGetErrorString(result));
}
launch_options on(names nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(300);
    return options;
}

template <class T> T value(int rank, std::size_t i, int step) {
    auto const of =
        (static_cast<unsigned>(rank) + static_cast<unsigned>(step) * 5 + static_cast<unsigned>(i)) % 4;
    return static_cast<T>(static_cast<accumulator<T>>(of * 12));
}
template <class T, class Update> T result(int ranks, std::size_t i, int step) {
    auto total = static_cast<accumulator<T>>(value<T>(0, i, step));
    for (int r = 1; r < ranks; ++r)
        total = Update::combine(total, static_cast<accumulator<T>>(value<T>(r, i, step)));
    return static_cast<T>(Update::finish(total, ranks));
}

// Steps whose tensors fill buckets and rows of chunks or do not, and a buffer, without a synchronisation between them.
template <class T, class Update> int work(world& ranks) {
    gpu::use_device(ranks);
    std::vector<std::size_t> const sizes{70000, 0, 3, 100001, 17};
    constexpr int steps = 3;
    std::size_t all = 0;
    for (std::size_t const s : sizes) all += s;
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    T *in = nullptr, *out = nullptr, *own = nullptr;
    must(cudaMallocHost(&in, all * steps * sizeof(T)), "cudaMallocHost");
    must(cudaMallocHost(&out, (all * steps + sizes[3]) * sizeof(T)), "cudaMallocHost");
    must(cudaMalloc(&own, sizes[3] * sizeof(T)), "cudaMalloc");
    int wrong = 0;
    {
        reducer<T, Update, transport::inproc, cut_small> reduce(ranks, layout::of(sizes));
        T *from = in, *to = out;
        for (int step = 0; step < steps; ++step) {
            for (std::size_t t = 0; t < sizes.size(); from += sizes[t], ++t) {
                device_span<T> const at = t == 3 ? device_span<T>(own, sizes[t]) : reduce.tensor(t);
                for (std::size_t i = 0; i < sizes[t]; ++i) from[i] = value<T>(ranks.rank(), i, step);
                must(cudaMemcpyAsync(at.data(), from, sizes[t] * sizeof(T), cudaMemcpyHostToDevice, stream),
                     "in");
                t == 3 ? reduce.ready(t, at, stream) : reduce.ready(t, stream);
            }
            reduce.wait(stream);
            for (std::size_t t = 0; t < sizes.size(); to += sizes[t], ++t)
                must(cudaMemcpyAsync(to, t == 3 ? own : reduce.tensor(t).data(), sizes[t] * sizeof(T),
                                     cudaMemcpyDeviceToHost, stream),
                     "out");
        }
        must(cudaMemcpyAsync(own, in, sizes[3] * sizeof(T), cudaMemcpyHostToDevice, stream), "in");
        reduce.all_reduce(device_span<T>(own, sizes[3]), stream);
        must(cudaMemcpyAsync(to, own, sizes[3] * sizeof(T), cudaMemcpyDeviceToHost, stream), "out");
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        wrong += reduce.intra_node().not_finite() != 0;
    }
    T const* got = out;
    auto const compare = [&](std::size_t count, int step) {
        for (std::size_t i = 0; i < count; ++i, ++got)
            wrong += !(*got == result<T, Update>(ranks.size(), i, step));
    };
    for (int step = 0; step < steps; ++step)
        for (std::size_t const s : sizes) compare(s, step);
    got = out + all * steps;
    // The buffer began with the first tensors: the first of them has 70000 elements.
    compare(sizes[0], 0);
    must(cudaFree(own), "cudaFree");
    must(cudaFreeHost(in), "cudaFreeHost");
    must(cudaFreeHost(out), "cudaFreeHost");
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    if (wrong != 0) std::fprintf(stderr, "rank %d: %d wrong elements\n", ranks.rank(), wrong);
    return wrong == 0 ? 0 : 1;
}

int devices = 0;
// By processes, or by threads of one.
template <class Work> bool passes(names const& nodes, Work const& work, bool threads = false) {
    int const ranks = static_cast<int>(nodes.size());
    if (!threads) return launch(ranks, work, on(nodes)) == 0;
    return launch(
               1, [&](world&) { return launch_threads(ranks, work, on(nodes)); }, on({"a"})) == 0;
}

template <class Function> std::string said(Function&& function) {
    try {
        function();
    } catch (error const& why) {
        return why.what();
    }
    return "nothing";
}

} // namespace

TEST_CASE("nccl: processes and threads, one node and two: the results are right") {
    CHECK(passes({"a", "a"}, work<float, update::sum>));
    CHECK(passes({"a", "a"}, work<bfloat16, update::average>, true));
    if (devices < 4) return; // nodes are names here: their ranks need devices of their own
    CHECK(passes({"a", "b", "a", "b"}, work<float, update::sum>, true));
    CHECK(passes({"a", "a", "a", "b"}, work<bfloat16, update::average>, true));
}

TEST_CASE("nccl: two ranks of one device are refused before NCCL is asked") {
    CHECK(passes({"a", "a"}, [](world& ranks) {
        must(cudaSetDevice(0), "cudaSetDevice");
        std::string const text = said([&] {
            reducer<float, transport::inproc, intra_node::nccl> reduce(ranks, {{"a", 100}});
        });
        std::fprintf(stderr, "%s\n", text.c_str());
        return text.find("it has the device of rank 0, and NCCL takes one rank a device") != std::string::npos
                   ? 0
                   : 1;
    }));
}

TEST_CASE("nccl: a rank is killed: the others name it in time, and their streams end") {
    struct board {
        std::atomic<bool> named{false}, ended{false};
    };
    void* const shared =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    board& told = *new (shared) board;
    int const status = launch(
        2,
        [&](world& ranks) {
            gpu::use_device(ranks);
            struct queue {
                cudaStream_t handle = nullptr;
                ~queue() { (void)cudaStreamDestroy(handle); }
            } own;
            must(cudaStreamCreateWithFlags(&own.handle, cudaStreamNonBlocking), "cudaStreamCreate");
            cudaStream_t const stream = own.handle;
            reducer<float, update::sum, transport::inproc, intra_node::nccl> reduce(ranks, {{"a", 100'000}});
            auto const step = [&] {
                reduce.ready(0, stream);
                reduce.wait(stream);
            };
            step();
            if (ranks.rank() == 1) (void)::kill(::getpid(), SIGKILL); // its all-reduce may be under way
            std::string text = "nothing";
            for (int i = 0; i < 100 && text == "nothing"; ++i) text = said(step);
            told.named = text.find("rank 1") != std::string::npos;
            if (!told.named) std::fprintf(stderr, "rank %d: %s\n", ranks.rank(), text.c_str());
            must(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); // while the reducer lives
            told.ended = true;
            return 0;
        },
        on({"a", "a"}));
    CHECK(status == 128 + SIGKILL);
    CHECK(told.named);
    CHECK(told.ended);
    ::munmap(shared, sizeof(board));
}

int main(int argc, char** argv) {
    // In a process of its own: who has asked for devices must not fork.
    devices = launch(1, [](world&) {
        int count = 0;
        return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
    });
    if (devices < 2) {
        std::puts("SKIPPED: cuda: nccl_test: it takes two devices, and NCCL: it was compiled and not run");
        return 0;
    }
    doctest::Context context(argc, argv);
    int const result = context.run();
    int const misused = herring_stand_in_complaints != nullptr ? herring_stand_in_complaints() : 0;
    if (misused != 0)
        std::printf("FAILED: cuda: %d misuses of CUDA or NCCL, which are told above\n", misused);
    return misused != 0 ? 1 : result;
}
