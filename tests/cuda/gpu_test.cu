// herring: on a GPU: the kernel, both intra-node reducers by threads and by processes, bad input. Skipped where there is none.
// SPDX-License-Identifier: Apache-2.0
//
// The process that runs the tests calls nothing of CUDA: ranks are forked from it.
#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest/doctest.h"

#include "conformance/intra_node_suite.hpp"

#include "herring/gpu/kernels.cuh"
#include "herring/gpu/recording.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/nvlink.cuh"
#include "herring/intra_node/pcie_staging.cuh"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime.h>

using namespace herring;
using namespace herring::conformance;

// A transport that reaches devices: compiled, and not run, for inproc copies by the host.
struct reaches_devices : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "reaches_devices";
    static constexpr bool device_memory = true;
    void register_device_memory(std::span<std::byte>, int) noexcept {}
};

namespace {

using names = std::vector<std::string>;

void must(cudaError_t result, char const* what) {
    if (result != cudaSuccess) throw error(errc::device, -1, -1, what, cudaGetErrorString(result));
}

launch_options on(names nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(300);
    return options;
}

// In a process of its own.
template <class Function> bool apart(Function&& function) {
    return launch(
               1, [&](world& alone) { return function(alone) ? 0 : 1; }, on({"a"})) == 0;
}

template <class T> T value(int rank, std::size_t tensor, std::size_t i, int step) {
    std::uint64_t mixed =
        (static_cast<std::uint64_t>(rank) << 48 ^ tensor << 40 ^ static_cast<std::uint64_t>(step) << 32 ^ i) *
        0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
    mixed *= 0xbf58476d1ce4e5b9u;
    mixed ^= mixed >> 32;
    if (mixed % 1000 == 0) return static_cast<T>(__builtin_inff());
    if (mixed % 1000 == 1) return static_cast<T>(__builtin_nanf(""));
    return static_cast<T>(static_cast<float>(static_cast<std::int32_t>(mixed >> 8 & 0xffffff) - 0x800000) *
                          0x1p-20f);
}

// ---- the kernel -----------------------------------------------------------------------------------------------------

// Random sizes, offsets and numbers of buffers; in a stream, and in a graph that was captured from it.
template <class T, class Update> bool kernel_gives_the_bits_of_the_host(int rounds) {
    dice roll(sizeof(T) * 7 + 3);
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    bool good = true;
    for (int round = 0; round < rounds && good; ++round) {
        int const k = 1 + static_cast<int>(roll(10));
        std::size_t const count = 1 + roll(round % 8 == 0 ? 3'000'000 : 20'000), room = count + 32;
        std::size_t const shift = roll(9);
        std::vector<T> from(room * static_cast<std::size_t>(k)), got(count), want(count);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = value<T>(k, 1, i, round);
        T *device = nullptr, *target = nullptr;
        must(cudaMalloc(&device, from.size() * sizeof(T)), "cudaMalloc");
        must(cudaMalloc(&target, room * sizeof(T)), "cudaMalloc");
        must(cudaMemcpy(device, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
        std::vector<kernel::source> sources;
        gpu::fold_work work;
        for (int s = 0; s < k; ++s) {
            std::size_t const at = static_cast<std::size_t>(s) * room + (roll(4) == 0 ? roll(9) : shift);
            sources.push_back({from.data() + at, false});
            work.sources[s] = device + at;
        }
        std::size_t const to = roll(4) == 0 ? roll(9) : shift;
        work.targets[0] = target + to;
        work.source_count = k;
        work.target_count = 1;
        work.ranks = static_cast<int>(roll(9));
        work.where = {0, count, 1 + roll(count), 0, 1};
        T* const into = want.data();
        kernel::fold<Update, T>(sources, std::span<T* const>(&into, 1), count, work.ranks);
        for (bool const captured : {false, true}) {
            must(cudaMemset(target, 0x11, room * sizeof(T)), "cudaMemset");
            if (!captured) {
                must(gpu::fold_on_device<Update, T>(work, stream, 132), "launch");
            } else {
                cudaGraph_t graph;
                cudaGraphExec_t made;
                must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                     "cudaStreamBeginCapture");
                must(gpu::fold_on_device<Update, T>(work, stream, 132), "launch");
                must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
                must(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
                must(cudaGraphLaunch(made, stream), "cudaGraphLaunch");
                must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
                must(cudaGraphExecDestroy(made), "cudaGraphExecDestroy");
                must(cudaGraphDestroy(graph), "cudaGraphDestroy");
            }
            must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
            must(cudaMemcpy(got.data(), target + to, count * sizeof(T), cudaMemcpyDeviceToHost),
                 "cudaMemcpy");
            good = good && std::memcmp(got.data(), want.data(), count * sizeof(T)) == 0;
        }
        must(cudaFree(device), "cudaFree");
        must(cudaFree(target), "cudaFree");
        if (!good)
            std::fprintf(stderr, "round %d: %d sources of %zu elements differ from the host's\n", round, k,
                         count);
    }
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return good;
}

// ---- the reducers ---------------------------------------------------------------------------------------------------

std::vector<std::size_t> const sizes{70000, 0, 3, 500001, 17, 1024, 2333, 1, 90000, 33, 60000};
constexpr int steps = 4;

using staging_by_graphs = gpu::basic_pcie_staging<gpu::cuda_runtime, gpu::staging_tuning{.graphs = true}>;
using sums_by_graphs = gpu::basic_nvlink<gpu::cuda_runtime, gpu::peer_sums_tuning{.graphs = true}>;
template <class Node>
constexpr bool replays = std::is_same_v<Node, staging_by_graphs> || std::is_same_v<Node, sums_by_graphs>;

// Runs steps on the device, without a synchronisation between them, and the same on the host; compares bits.
template <class Node, class T, class Update> int work(world& ranks) {
    gpu::use_device(ranks);
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    using fusion = fusion::balanced_buffer<64_KiB, 1>;
    reducer<T, Update, transport::inproc, Node, fusion> reduce(ranks, layout::of(sizes));
    reducer<T, Update, transport::inproc, intra_node::shared_memory, fusion> model(ranks, layout::of(sizes));
    std::size_t all = 0;
    for (std::size_t const s : sizes) all += s;
    T *in = nullptr, *out = nullptr, *own = nullptr;
    must(cudaMallocHost(&in, all * steps * sizeof(T)), "cudaMallocHost");
    must(cudaMallocHost(&out, all * steps * sizeof(T)), "cudaMallocHost");
    must(cudaMalloc(&own, (sizes[3] + sizes[8] + 1) * sizeof(T)), "cudaMalloc");
    auto const place =
        [&](std::size_t t) -> device_span<T> { // two are the caller's, one of them at an odd place
        if (t == 3) return {own + 1, sizes[3]};
        if (t == 8) return {own + 1 + sizes[3], sizes[8]};
        return reduce.tensor(t);
    };
    for (int step = 0; step < steps; ++step) {
        T* from = in + all * static_cast<std::size_t>(step);
        for (std::size_t t = 0; t < sizes.size(); from += sizes[t], ++t) {
            for (std::size_t i = 0; i < sizes[t]; ++i) from[i] = value<T>(ranks.rank(), t, i, step);
            must(cudaMemcpyAsync(place(t).data(), from, sizes[t] * sizeof(T), cudaMemcpyHostToDevice, stream),
                 "in");
            t == 3 || t == 8 ? reduce.ready(t, place(t), stream) : reduce.ready(t, stream);
        }
        reduce.wait(stream);
        T* to = out + all * static_cast<std::size_t>(step);
        for (std::size_t t = 0; t < sizes.size(); to += sizes[t], ++t)
            must(cudaMemcpyAsync(to, place(t).data(), sizes[t] * sizeof(T), cudaMemcpyDeviceToHost, stream),
                 "out");
    }
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    int wrong = 0;
    for (int step = 0; step < steps; ++step) {
        T const* got = out + all * static_cast<std::size_t>(step);
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            auto const at = model.tensor(t);
            for (std::size_t i = 0; i < at.size(); ++i) at[i] = value<T>(ranks.rank(), t, i, step);
            model.ready(t);
        }
        model.wait();
        for (std::size_t t = 0; t < sizes.size(); got += sizes[t], ++t)
            if (std::memcmp(got, model.tensor(t).data(), sizes[t] * sizeof(T)) != 0) {
                std::fprintf(stderr, "rank %d: step %d: tensor %zu differs from the host's\n", ranks.rank(),
                             step, t);
                wrong = 1;
            }
    }
    if (replays<Node> && reduce.intra_node().replays() == 0) {
        std::fprintf(stderr, "rank %d: no graph was launched\n", ranks.rank());
        wrong = 1;
    }
    // Buffers outside the layout, of one piece and of two.
    for (std::size_t const count : {std::size_t{1}, std::size_t{100000}, std::size_t{570000}}) {
        for (std::size_t i = 0; i < count; ++i) in[i] = value<T>(ranks.rank(), 99, i, 0);
        must(cudaMemcpyAsync(own, in, count * sizeof(T), cudaMemcpyHostToDevice, stream), "in");
        reduce.all_reduce({own, count}, stream);
        must(cudaMemcpyAsync(out, own, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "out");
        model.all_reduce(std::span<T>(in, count));
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        if (std::memcmp(in, out, count * sizeof(T)) != 0) {
            std::fprintf(stderr, "rank %d: an all_reduce of %zu differs from the host's\n", ranks.rank(),
                         count);
            wrong = 1;
        }
    }
    must(cudaFree(own), "cudaFree");
    must(cudaFreeHost(in), "cudaFreeHost");
    must(cudaFreeHost(out), "cudaFreeHost");
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return wrong;
}

template <class Node, class T, class Update> void by_processes_and_threads(names const& nodes) {
    int const n = static_cast<int>(nodes.size());
    CAPTURE(n);
    bool networked = false;
    for (std::string const& name : nodes) networked = networked || name != nodes[0];
    if (!networked) // inproc joins threads only
        CHECK(launch(
                  n, [](world& ranks) { return work<Node, T, Update>(ranks); }, on(nodes)) == 0);
    CHECK(apart([&](world&) {
        return launch_threads(
                   n, [](world& ranks) { return work<Node, T, Update>(ranks); }, on(nodes)) == 0;
    }));
}

template <class Node> void every_world() {
    for (int n = 1; n <= 8; ++n)
        by_processes_and_threads<Node, float, update::average>(names(static_cast<std::size_t>(n), "a"));
    by_processes_and_threads<Node, float, update::average>({"a", "a", "b", "b"});
    by_processes_and_threads<Node, bfloat16, update::average>({"a", "a", "a"});
    by_processes_and_threads<Node, bfloat16, update::average>({"a", "a", "b"});
    by_processes_and_threads<Node, float16, update::sum>({"a", "b", "b"});
    by_processes_and_threads<Node, double, update::sum>({"a", "a"});
}

// As above: compiled.
[[maybe_unused]] void parts_on_the_device(world& ranks) {
    reducer<bfloat16, reaches_devices, intra_node::nvlink> reduce(ranks, {{"a", 100}});
    reduce.ready(0, nullptr);
    reduce.wait(nullptr);
}

// What a call that must fail says.
template <class Call> std::string said(Call&& call) {
    try {
        call();
    } catch (error const& why) {
        return why.what();
    }
    return "nothing";
}

} // namespace

TEST_CASE("sanitizer: the kernel gives the bits of the host's fold") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        return kernel_gives_the_bits_of_the_host<float, update::average>(12);
    }));
}

TEST_CASE("the kernel gives the bits of the host's fold, in a stream and in a graph") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        return kernel_gives_the_bits_of_the_host<float, update::average>(40) &&
               kernel_gives_the_bits_of_the_host<double, update::sum>(40) &&
               kernel_gives_the_bits_of_the_host<bfloat16, update::average>(40) &&
               kernel_gives_the_bits_of_the_host<float16, update::average>(40);
    }));
}

TEST_CASE("pcie_staging: 1 to 8 ranks, by processes and by threads") {
    every_world<intra_node::pcie_staging>();
}
TEST_CASE("nvlink: 1 to 8 ranks, by processes and by threads") { every_world<intra_node::nvlink>(); }

TEST_CASE("both pass the suite of their axis, by processes and by threads") {
    CHECK(text(intra_node_suite<intra_node::pcie_staging>({.start = ranks_as::processes})) == "");
    CHECK(text(intra_node_suite<intra_node::nvlink>({.start = ranks_as::processes})) == "");
    CHECK(apart([](world&) {
        std::string const found =
            text(intra_node_suite<intra_node::pcie_staging>()) + text(intra_node_suite<intra_node::nvlink>());
        if (!found.empty()) std::fputs(found.c_str(), stderr);
        return found.empty();
    }));
}

TEST_CASE("by graphs: 1 to 3 ranks, by processes and by threads") {
    for (names const& nodes : {names{"a"}, names{"a", "a"}, names{"a", "a", "a"}, names{"a", "a", "b"}}) {
        by_processes_and_threads<staging_by_graphs, float, update::average>(nodes);
        by_processes_and_threads<sums_by_graphs, bfloat16, update::average>(nodes);
    }
}

TEST_CASE("bad input: an event in a capture is an error that says so") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        gpu::cuda_runtime device(alone);
        gpu::cuda_runtime::stream queue(device), other(device);
        gpu::cuda_runtime::event mark(device, false);
        gpu::recording<gpu::cuda_runtime> kept;
        device.record(mark, other.handle());
        for (int i = 0; i < 2; ++i)
            (void)kept.run(device, queue.handle(), true, [&] { device.wait(queue.handle(), mark); });
        std::fprintf(stderr, "%s\n", device.failed() == nullptr ? "nothing" : device.failed()->text);
        return device.failed() != nullptr && std::strstr(device.failed()->text, "apture") != nullptr;
    }));
}

TEST_CASE("results are inspected where that is asked for: what is no number, and the squared norm") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        using inspecting = gpu::basic_nvlink<gpu::cuda_runtime, gpu::peer_sums_tuning{.inspect = true}>;
        reducer<float, transport::inproc, inspecting> reduce(alone, {{"a", 300000}, {"b", 7}});
        std::vector<float> values(300000);
        double norms[3] = {}, want = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>(i % 1000) / 7 - 70;
            want += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        }
        for (int step = 0; step < 3; ++step) {
            if (step == 2) {
                values[0] = values[999] = __builtin_inff();
                values[500] = __builtin_nanf("");
            }
            must(
                cudaMemcpy(reduce.tensor(0).data(), values.data(), values.size() * 4, cudaMemcpyHostToDevice),
                "cudaMemcpy");
            reduce.ready(0, nullptr);
            reduce.ready(1, nullptr);
            reduce.wait(nullptr);
            must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
            norms[step] = reduce.intra_node().squared_norm();
            if (reduce.intra_node().not_finite() != (step == 2 ? 3u : 0u)) return false;
        }
        std::fprintf(stderr, "squared norm: %.17g, the host's %.17g\n", norms[0], want);
        return norms[0] == norms[1] && norms[0] > want * (1 - 1e-12) && norms[0] < want * (1 + 1e-12) &&
               norms[2] != norms[2];
    }));
}

TEST_CASE("bad input: memory of the host, a size that differs, more than there is") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        reducer<float, transport::inproc, intra_node::pcie_staging> reduce(alone, {{"a", 100}});
        std::vector<float> host(100);
        std::string const first =
            said([&] { reduce.ready(0, device_span<float>(host.data(), 100), nullptr); });
        std::string const second =
            said([&] { reduce.ready(0, device_span<float>(reduce.tensor(0).data(), 99), nullptr); });
        reduce.ready(0, nullptr); // and it is as it was
        reduce.wait(nullptr);
        std::fprintf(stderr, "%s\n%s\n", first.c_str(), second.c_str());
        return first.find("memory of the host") != std::string::npos &&
               second.find("99") != std::string::npos;
    }));
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        std::string const text = said([&] {
            reducer<float, transport::inproc, intra_node::pcie_staging> reduce(alone,
                                                                               {{"a", std::size_t{1} << 38}});
        });
        std::fprintf(stderr, "%s\n", text.c_str());
        return text.find("rank 0") != std::string::npos && text.find("no resources") != std::string::npos;
    }));
}

TEST_CASE("bad input: memory of another device") {
    CHECK(apart([](world& alone) {
        int devices = 0;
        must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        if (devices < 2) {
            std::puts("SKIPPED: cuda: memory of another device: there is one GPU");
            return true;
        }
        gpu::use_device(alone);
        reducer<float, transport::inproc, intra_node::pcie_staging> reduce(alone, {{"a", 100}});
        float* there = nullptr;
        must(cudaSetDevice(1), "cudaSetDevice");
        must(cudaMalloc(&there, 400), "cudaMalloc");
        std::string const text = said([&] { reduce.ready(0, device_span<float>(there, 100), nullptr); });
        std::fprintf(stderr, "%s\n", text.c_str());
        reduce.ready(0, nullptr); // and it is as it was, whatever device is current
        reduce.wait(nullptr);
        must(cudaFree(there), "cudaFree");
        return text.find("memory of another device") != std::string::npos;
    }));
}

__global__ void faulty_kernel(float* nowhere) { *nowhere = 1; }

TEST_CASE("bad input: an error of a kernel of the program's is told as such") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        reducer<float, transport::inproc, intra_node::pcie_staging> reduce(alone, {{"a", 100}});
        faulty_kernel<<<1, 1>>>(nullptr);
        std::string const text = said([&] {
            reduce.ready(0, nullptr);
            reduce.wait(nullptr);
        });
        std::fprintf(stderr, "%s\n", text.c_str());
        std::fflush(stderr);
        bool const good = text.find("of the program's own") != std::string::npos;
        ::_exit(good ? 0 : 1); // the context is broken
        return good;
    }));
}

TEST_CASE("anywhere: what an error says: the rank, the device, the call, and whose it is") {
    auto const text = [](cudaError_t result, char const* call, std::size_t bytes, char const* advice) {
        return std::string(error(gpu::detail::cuda_failure(3, 1, result, call, bytes, advice)).what());
    };
    std::string const memory = text(cudaErrorMemoryAllocation, "cudaMalloc", 4096, "use less");
    CHECK(memory.find("rank 3") != std::string::npos);
    CHECK(memory.find("no resources") != std::string::npos);
    CHECK(memory.find("device 1: cudaMalloc of 4096 bytes") != std::string::npos);
    CHECK(memory.find("use less") != std::string::npos);
    for (cudaError_t const late : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorAssert}) {
        std::string const sticky = text(late, "cudaMemcpyAsync to the host", 0, nullptr);
        CHECK(sticky.find("device error") != std::string::npos);
        CHECK(sticky.find("of the program's own") != std::string::npos);
    }
    CHECK(text(cudaErrorInvalidValue, "cudaEventRecord", 0, nullptr).find("program's own") ==
          std::string::npos);
}

TEST_CASE("nowhere: without a device both reducers say so, and what to look at") {
    CHECK(apart([](world& alone) {
        std::string const first = said([&] { gpu::use_device(alone); });
        std::string const second = said([&] {
            reducer<float, transport::inproc, intra_node::pcie_staging> reduce(alone, {{"a", 100}});
        });
        std::fprintf(stderr, "%s\n%s\n", first.c_str(), second.c_str());
        return first.find("no CUDA device") != std::string::npos &&
               first.find("unsupported") != std::string::npos &&
               second.find("no CUDA device") != std::string::npos &&
               second.find("intra_node::shared_memory") != std::string::npos;
    }));
}

int main(int argc, char** argv) {
    // In a process of its own: who has asked for devices must not fork.
    int const absent = launch(1, [](world&) {
        int count = 0;
        return cudaGetDeviceCount(&count) == cudaSuccess && count > 0 ? 0 : 3;
    });
    if (argc > 1 && std::string_view(argv[1]) == "--no-device")
        return absent != 0 ? 0 : 1; // 0: there is none
    doctest::Context context(argc, argv);
    if (absent == 0) {
        context.addFilter("test-case-exclude", "nowhere*");
        return context.run();
    }
    context.addFilter("test-case", "anywhere*,nowhere*");
    int const result = context.run();
    std::puts("SKIPPED: cuda: no GPU here: what runs on one was compiled and not run");
    return result;
}
