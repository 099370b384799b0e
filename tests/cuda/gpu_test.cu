// herring: on a GPU: the kernel, both intra-node reducers by threads and by processes, bad input. Where there is none: over stand_in/.
// SPDX-License-Identifier: Apache-2.0
//
// The process that runs the tests calls nothing of CUDA: ranks are forked from it.
#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest/doctest.h"

#include "conformance/intra_node_suite.hpp"
#include "cuda/bit_patterns.hpp"

#include "herring/gpu/kernel/kernels.cuh"
#include "herring/gpu/pipeline/pipeline.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/nvlink.cuh"
#include "herring/intra_node/pcie_staging.cuh"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda_runtime.h>

using namespace herring;
using namespace herring::conformance;

// A transport that reaches devices: compiled, and not run, for inproc copies by the host.
struct reaches_devices : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "reaches_devices";
    static constexpr transport_facts facts{.keeps_order = true,
                                           .device_memory = true,
                                           .abandons = true,
                                           .envelope_bytes = inproc::facts.envelope_bytes,
                                           .tuning = transport::inproc::facts.tuning};
    void register_device_memory(std::span<std::byte>, int) noexcept {}
};

// Of tests/cuda/stand_in, where that is linked in place of CUDA's runtime: calls that CUDA forbids, and ranks that left objects
// behind, of all processes.
extern "C" {
int herring_stand_in_complaints() __attribute__((weak));
int herring_stand_in_left() __attribute__((weak));
int herring_stand_in_copies() __attribute__((weak)); // within a device
int herring_stand_in_opened() __attribute__((weak)); // allocations, by other processes
}

namespace {

bool on_stand_in() { return herring_stand_in_complaints != nullptr; }
// On a GPU nobody counts.
int left_behind() { return on_stand_in() ? herring_stand_in_left() : 0; }

using names = std::vector<std::string>;

void must(cudaError_t result, char const* what) {
    if (result != cudaSuccess) throw error(errc::device, -1, -1, what, cudaGetErrorString(result));
}

struct queue {
    explicit queue(unsigned flags = cudaStreamNonBlocking) {
        must(cudaStreamCreateWithFlags(&handle, flags), "cudaStreamCreate");
    }
    queue(queue const&) = delete;
    queue& operator=(queue const&) = delete;
    ~queue() { (void)cudaStreamDestroy(handle); }
    cudaStream_t handle = nullptr;
};
template <class T> struct pinned {
    explicit pinned(std::size_t count) { must(cudaMallocHost(&at, count * sizeof(T)), "cudaMallocHost"); }
    pinned(pinned const&) = delete;
    pinned& operator=(pinned const&) = delete;
    ~pinned() { (void)cudaFreeHost(at); }
    T* at = nullptr;
};
template <class T> struct device_memory {
    explicit device_memory(std::size_t count) { must(cudaMalloc(&at, count * sizeof(T)), "cudaMalloc"); }
    device_memory(device_memory const&) = delete;
    device_memory& operator=(device_memory const&) = delete;
    ~device_memory() { (void)cudaFree(at); }
    T* at = nullptr;
};

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

// Bits of every kind; of one kind for all ranks of an element.
template <class T> T value(int rank, std::size_t tensor, std::size_t i, int step) {
    return bit_patterns::value<T>(
        static_cast<std::uint64_t>(tensor) << 40 ^ static_cast<std::uint64_t>(step) << 32 ^ i, rank);
}

// ---- the kernel -----------------------------------------------------------------------------------------------------

// As results must be: the same bits. Partial sums need not agree in a NaN's: they are no result yet.
template <class T> bool as_due(T const* got, T const* want, std::size_t count, bool wide) {
    if (!wide || std::memcmp(got, want, count * sizeof(T)) == 0)
        return std::memcmp(got, want, count * sizeof(T)) == 0;
    for (std::size_t i = 0; i < count; ++i)
        if (std::memcmp(got + i, want + i, sizeof(T)) != 0 && (got[i] == got[i] || want[i] == want[i]))
            return false;
    return true;
}

// Random sizes, offsets, numbers of buffers and bits; in a stream, and in a graph that was captured from it.
template <class T, class Update> bool kernel_gives_the_bits_of_the_host(int rounds) {
    using number = accumulator<T>;
    dice roll(sizeof(T) * 7 + 3);
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    bool good = true;
    for (int round = 0; round < rounds && good; ++round) {
        int const k = 1 + static_cast<int>(roll(10));
        std::size_t const count = 1 + roll(round % 8 == 0 ? 3'000'000 : 20'000), room = count + 32;
        std::size_t const shift = roll(9);
        bool const wide = roll(3) == 0;
        std::size_t const size = wide ? sizeof(number) : sizeof(T);
        std::vector<T> from(room * static_cast<std::size_t>(k)), want(count), got(count);
        std::vector<number> want_wide(count), got_wide(count);
        std::byte* target = nullptr;
        T* device = nullptr;
        must(cudaMalloc(&device, from.size() * sizeof(T)), "cudaMalloc");
        must(cudaMalloc(&target, room * size), "cudaMalloc");
        std::vector<kernel::source> sources;
        gpu::fold_args work;
        for (int s = 0; s < k; ++s) {
            std::size_t const at = static_cast<std::size_t>(s) * room + (roll(4) == 0 ? roll(9) : shift);
            for (std::size_t i = 0; i < count; ++i) from[at + i] = value<T>(s, 1, i, round);
            sources.push_back({from.data() + at});
            work.sources[s] = device + at;
        }
        must(cudaMemcpy(device, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
        std::byte* const to = target + (roll(4) == 0 ? roll(9) : shift) * size;
        work.targets[0] = to;
        work.source_count = k;
        work.target_count = 1;
        work.in_accumulator = wide;
        work.ranks = wide ? 0 : static_cast<int>(roll(9));
        work.where = {0, count, 1 + roll(count), 0, 1};
        T* const into = want.data();
        if (wide)
            kernel::fold_partial<Update, T>(sources, want_wide.data(), count);
        else
            kernel::fold<Update, T>(sources, std::span<T* const>(&into, 1), count, work.ranks);
        for (bool const captured : {false, true}) {
            must(cudaMemset(target, 0x11, room * size), "cudaMemset");
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
            void* const back = wide ? static_cast<void*>(got_wide.data()) : got.data();
            must(cudaMemcpy(back, to, count * size, cudaMemcpyDeviceToHost), "cudaMemcpy");
            good = good && (wide ? as_due(got_wide.data(), want_wide.data(), count, true)
                                 : as_due(got.data(), want.data(), count, false));
        }
        must(cudaFree(device), "cudaFree");
        must(cudaFree(target), "cudaFree");
        if (!good)
            std::fprintf(stderr, "%s of %s: round %d: %d sources of %zu elements, %s: not the host's bits\n",
                         Update::name, element<T>::name, round, k, count,
                         wide ? "a partial sum" : "finished");
    }
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return good;
}

// Random lists: sizes from nothing to many chunks, places aligned alike and not. In a stream.
bool copies_are_those_of_the_list(int rounds) {
    dice roll(20);
    world alone;
    gpu::cuda_runtime device(alone);
    queue stream;
    constexpr std::size_t room = std::size_t{40} << 20;
    device_memory<unsigned char> from(room), to(room);
    std::vector<unsigned char> source(room), want(room), got(room);
    for (std::size_t i = 0; i < room; ++i) source[i] = static_cast<unsigned char>(roll(256));
    must(cudaMemcpy(from.at, source.data(), room, cudaMemcpyHostToDevice), "cudaMemcpy");
    gpu::cuda_runtime::batch batch(device, 600);
    for (int round = 0; round < rounds; ++round) {
        std::size_t const count = 1 + roll(round % 4 == 0 ? 500 : 30);
        std::vector<gpu::copy_item> items;
        std::fill(want.begin(), want.end(), static_cast<unsigned char>(0x11));
        std::size_t at = 0, read = 0;
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t const kind = roll(8), bytes = kind == 0   ? 0
                                                      : kind == 1 ? roll(4'000'000)
                                                                  : roll(70'000);
            at += roll(2) == 0 ? 16 - at % 16 : roll(20);
            read += roll(2) == 0 ? 16 - read % 16 : roll(20);
            if (at + bytes > room || read + bytes > room) break;
            items.push_back({to.at + at, from.at + read, bytes});
            std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(read), bytes,
                        want.begin() + static_cast<std::ptrdiff_t>(at));
            at += bytes, read += bytes;
        }
        must(cudaMemsetAsync(to.at, 0x11, room, stream.handle), "cudaMemset");
        device.list(batch, 3, items);
        for (int twice = 0; twice < 2; ++twice) device.copy_many(stream.handle, batch, 3, items.size());
        must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
        must(cudaMemcpy(got.data(), to.at, room, cudaMemcpyDeviceToHost), "cudaMemcpy");
        if (device.failed() != nullptr || got != want) {
            std::fprintf(stderr, "round %d: %zu copies: not those of the list\n", round, items.size());
            return false;
        }
    }
    return true;
}

// ---- the reducers ---------------------------------------------------------------------------------------------------

/// Tensors, of which some are the caller's, and the buffers that are reduced outside the layout.
struct load {
    std::vector<std::size_t> sizes;
    std::size_t every; ///< tensors t with t mod every = every − 2 are the caller's, from an odd place on
    std::vector<std::size_t> others;
};
load const ordinary{{70000, 0, 3, 500001, 17, 1024, 2333, 1, 90000, 33, 60000}, 5, {1, 100000, 570000}};
// Several of the caller's in a bucket: packed and unpacked as a batch.
load const small{{700, 0, 3, 5001, 17, 1, 2333, 9000, 20001, 33, 600}, 2, {1, 5000}};
constexpr int steps = 4;

// Large tensors are cut into eight parts, whatever the cores summed by threads that each have chunks of them.
using staging_by_graphs =
    gpu::basic_pcie_staging<gpu::cuda_runtime, gpu::staging_tuning{.local_chunk_bytes = 16_KiB,
                                                                   .split_bytes = 256_KiB,
                                                                   .sum_threads = 2,
                                                                   .graphs = true}>;
using sums_by_graphs =
    gpu::basic_nvlink<gpu::cuda_runtime, gpu::peer_sums_tuning{.split_bytes = 256_KiB, .graphs = true}>;
using staging_with_all =
    gpu::basic_pcie_staging<gpu::cuda_runtime, gpu::staging_tuning{.inspect = true, .graphs = true}>;
using sums_with_all =
    gpu::basic_nvlink<gpu::cuda_runtime, gpu::peer_sums_tuning{.inspect = true, .graphs = true}>;
template <class Node> constexpr bool inspects = false;
template <> constexpr bool inspects<staging_with_all> = true;
template <> constexpr bool inspects<sums_with_all> = true;
template <class Node> constexpr bool replays = inspects<Node>;
template <> constexpr bool replays<staging_by_graphs> = true;
template <> constexpr bool replays<sums_by_graphs> = true;

// Runs steps on the device, without a synchronisation between them, and the same on the host; compares bits.
template <class Node, class T, class Update> int work(world& ranks, load const& what = ordinary) {
    std::vector<std::size_t> const& sizes = what.sizes;
    gpu::use_device(ranks);
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    using fusion = fusion::balanced_buffer<64_KiB, 1>;
    reducer<T, Update, transport::inproc, Node, fusion> reduce(ranks, layout::of(sizes));
    reducer<T, Update, transport::inproc, intra_node::shared_memory, fusion> model(ranks, layout::of(sizes));
    std::size_t all = 0, outside = 0, most = 0;
    std::vector<std::size_t> place_of(sizes.size());
    for (std::size_t t = 0; t < sizes.size(); ++t) {
        all += sizes[t];
        if (t % what.every == what.every - 2) place_of[t] = std::exchange(outside, outside + sizes[t]) + 1;
    }
    for (std::size_t const count : what.others) most = std::max(most, count);
    T *in = nullptr, *out = nullptr, *own = nullptr;
    must(cudaMallocHost(&in, std::max(all * steps, most) * sizeof(T)), "cudaMallocHost");
    must(cudaMallocHost(&out, std::max(all * steps, most) * sizeof(T)), "cudaMallocHost");
    must(cudaMalloc(&own, (std::max(outside, most) + 1) * sizeof(T)), "cudaMalloc");
    auto const place = [&](std::size_t t) -> device_span<T> {
        return place_of[t] > 0 ? device_span<T>(own + place_of[t], sizes[t]) : reduce.tensor(t);
    };
    for (int step = 0; step < steps; ++step) {
        T* from = in + all * static_cast<std::size_t>(step);
        for (std::size_t t = 0; t < sizes.size(); from += sizes[t], ++t) {
            for (std::size_t i = 0; i < sizes[t]; ++i) from[i] = value<T>(ranks.rank(), t, i, step);
            must(cudaMemcpyAsync(place(t).data(), from, sizes[t] * sizeof(T), cudaMemcpyHostToDevice, stream),
                 "in");
            place_of[t] > 0 ? reduce.ready(t, place(t), stream) : reduce.ready(t, stream);
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
    if constexpr (inspects<Node>)
        if (reduce.intra_node().not_finite() == 0) { // there are some in every step
            std::fprintf(stderr, "rank %d: nothing was found to be no number\n", ranks.rank());
            wrong = 1;
        }
    // Buffers outside the layout, of one piece and of two.
    for (std::size_t const count : what.others) {
        for (std::size_t i = 0; i < count; ++i) in[i] = value<T>(ranks.rank(), 99, i, 0);
        must(cudaMemcpyAsync(own, in, count * sizeof(T), cudaMemcpyHostToDevice, stream), "in");
        reduce.all_reduce({own, count}, stream);
        must(cudaMemcpyAsync(out, own, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "out");
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); // `in` has been read
        model.all_reduce(std::span<T>(in, count));
        if (std::memcmp(in, out, count * sizeof(T)) != 0) {
            std::fprintf(stderr, "rank %d: an all_reduce of %zu differs from the host's\n", ranks.rank(),
                         count);
            wrong = 1;
        }
    }
    reduce.forget({own, 1}); // other processes have it open
    must(cudaFree(own), "cudaFree");
    must(cudaFreeHost(in), "cudaFreeHost");
    must(cudaFreeHost(out), "cudaFreeHost");
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return wrong;
}

template <class Node, class T, class Update> void by_processes_and_threads(names const& nodes) {
    int const n = static_cast<int>(nodes.size());
    CAPTURE(n);
    int const left = left_behind();
    bool networked = false;
    for (std::string const& name : nodes) networked = networked || name != nodes[0];
    auto const body = [](world& ranks) {
        int const wrong = work<Node, T, Update>(ranks);
        cudaError_t const left_unread = cudaPeekAtLastError(); // by a call of Herring's, or a destructor
        if (left_unread != cudaSuccess)
            std::fprintf(stderr, "rank %d: an error is left: %s\n", ranks.rank(),
                         cudaGetErrorName(left_unread));
        return wrong != 0 || left_unread != cudaSuccess;
    };
    if (!networked) CHECK(launch(n, body, on(nodes)) == 0); // inproc joins threads only
    CHECK(apart([&](world&) { return launch_threads(n, body, on(nodes)) == 0; }));
    CHECK(left_behind() == left);
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
        return kernel_gives_the_bits_of_the_host<float, update::average>(12) &&
               kernel_gives_the_bits_of_the_host<float16, update::average>(12);
    }));
}

template <class Node, class T, class Update> bool small_work_by_threads(names const& nodes) {
    return apart([&](world&) {
        return launch_threads(
                   static_cast<int>(nodes.size()),
                   [](world& ranks) { return work<Node, T, Update>(ranks, small); }, on(nodes)) == 0;
    });
}

TEST_CASE("sanitizer: pcie_staging: 2 ranks, packed and unpacked, odd addresses") {
    CHECK(small_work_by_threads<intra_node::pcie_staging, float, update::average>({"a", "a"}));
    CHECK(small_work_by_threads<intra_node::pcie_staging, bfloat16, update::sum>({"a", "b"}));
}
TEST_CASE("sanitizer: pcie_staging: 2 ranks, inspected, by graphs") {
    CHECK(small_work_by_threads<staging_with_all, float, update::average>({"a", "a"}));
}
TEST_CASE("sanitizer: nvlink: 2 ranks, packed and unpacked, odd addresses") {
    CHECK(small_work_by_threads<intra_node::nvlink, float, update::average>({"a", "a"}));
    CHECK(small_work_by_threads<intra_node::nvlink, bfloat16, update::average>({"a", "b"}));
}
TEST_CASE("sanitizer: nvlink: 2 ranks, inspected, by graphs") {
    CHECK(small_work_by_threads<sums_with_all, float, update::average>({"a", "a"}));
}

__global__ void beyond_its_end(float const* from, float* to) { *to = from[threadIdx.x]; }

// Run by itself, under compute-sanitizer: it must be found, also in a process that was forked.
TEST_CASE("control: a kernel that reads beyond the end of its memory" * doctest::skip()) {
    CHECK(apart([](world&) {
        float *from = nullptr, *to = nullptr;
        must(cudaMalloc(&from, 31 * sizeof(float)), "cudaMalloc");
        must(cudaMalloc(&to, sizeof(float)), "cudaMalloc");
        beyond_its_end<<<1, 32>>>(from, to);
        (void)cudaDeviceSynchronize();
        return true;
    }));
}

TEST_CASE("sanitizer: batched copies are those of their list") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        return copies_are_those_of_the_list(8);
    }));
}

template <class... T> bool sums_have_the_bits_of_the_host() {
    return (kernel_gives_the_bits_of_the_host<T, update::sum>(24) && ...);
}
template <class... T> bool averages_have_the_bits_of_the_host() {
    return (kernel_gives_the_bits_of_the_host<T, update::average>(24) && ...);
}
template <class... T> bool largest_have_the_bits_of_the_host() {
    return (kernel_gives_the_bits_of_the_host<T, update::max>(24) && ...);
}

TEST_CASE("the kernel gives the bits of the host's fold, in a stream and in a graph") {
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        return sums_have_the_bits_of_the_host<float, double, bfloat16, float16, std::int32_t, std::int64_t>();
    }));
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        return averages_have_the_bits_of_the_host<float, double, bfloat16, float16>();
    }));
    CHECK(apart([](world& alone) {
        gpu::use_device(alone);
        return largest_have_the_bits_of_the_host<float, float16, std::int64_t>();
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
        gpu::graph_cache<gpu::cuda_runtime> kept;
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
        double norms[3] = {};
        long double want = 0; // one after the other, in double, this many are worse than the device's
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<float>(i % 1000) / 7 - 70;
            want += static_cast<long double>(values[i]) * static_cast<long double>(values[i]);
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
        std::fprintf(stderr, "squared norm: %.17g, the host's %.17g\n", norms[0], static_cast<double>(want));
        return norms[0] == norms[1] && norms[0] > want * (1 - 1e-12L) && norms[0] < want * (1 + 1e-12L) &&
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

// How many devices there are, asked in a process of its own.
int devices() {
    return launch(1, [](world&) {
        int count = 0;
        return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
    });
}
bool two_devices(char const* what) {
    bool const there = devices() >= 2;
    if (!there)
        std::printf(on_stand_in() ? "stand-in: one device: left out: %s\n"
                                  : "SKIPPED: cuda: %s: there is one GPU\n",
                    what);
    return there;
}

template <class Node> bool what_is_of_another_device_is_refused() {
    return apart([](world& alone) {
        gpu::use_device(alone);
        reducer<float, transport::inproc, Node> reduce(alone, {{"a", 100}});
        float* there = nullptr;
        must(cudaSetDevice(1), "cudaSetDevice");
        must(cudaMalloc(&there, 400), "cudaMalloc");
        std::string const text = said([&] { reduce.ready(0, device_span<float>(there, 100), nullptr); });
        std::string of_stream;
        {
            queue other;
            of_stream = said([&] { reduce.ready(0, other.handle); });
        }
        std::fprintf(stderr, "%s\n%s\n", text.c_str(), of_stream.c_str());
        reduce.ready(0, nullptr); // and it is as it was, whatever device is current
        reduce.wait(nullptr);
        must(cudaFree(there), "cudaFree");
        return text.find("memory of another device") != std::string::npos &&
               of_stream.find("stream of another device") != std::string::npos;
    });
}

TEST_CASE("bad input: memory and a stream of another device") {
    if (!two_devices("memory and a stream of another device")) return;
    CHECK(what_is_of_another_device_is_refused<intra_node::pcie_staging>());
    CHECK(what_is_of_another_device_is_refused<intra_node::nvlink>());
}

TEST_CASE("bad input: a device that another rank does not see: the pair is named, and the way out") {
    if (!two_devices("a device that another rank does not see")) return;
    CHECK(launch(
              2,
              [](world& ranks) {
                  char const* const listed = std::getenv("CUDA_VISIBLE_DEVICES");
                  std::string all = listed != nullptr ? listed : "0,1";
                  if (ranks.rank() == 1) all.erase(0, all.find(',') + 1);
                  ::setenv("CUDA_VISIBLE_DEVICES", all.substr(0, all.find(',')).c_str(), 1);
                  std::string const text = said([&] {
                      reducer<float, transport::inproc, intra_node::nvlink> reduce(ranks, {{"a", 100}});
                  });
                  std::fprintf(stderr, "%s\n", text.c_str());
                  bool good = true;
                  for (char const* const part : {"rank 0", "rank 1", "CUDA_VISIBLE_DEVICES", "pcie_staging"})
                      good = good && text.find(part) != std::string::npos;
                  return good ? 0 : 1;
              },
              on({"a", "a"})) == 0);
}

// ---- streams of the program's: several, captured, or with an error that is not read ------------------------------

namespace {

constexpr std::size_t few = 40000; // elements of a tensor
float sample(int rank, std::size_t t, std::size_t i, int step) {
    return static_cast<float>((static_cast<std::size_t>(rank) + 1) *
                              (100 * t + 10 * static_cast<std::size_t>(step) + i % 7));
}

// Tensors 0 and 2 come from stream a, 1 from stream b; 2 is the caller's. The results are read in a.
template <class Node> int two_streams(world& ranks) {
    gpu::use_device(ranks);
    queue a, b;
    constexpr std::size_t tensors = 3;
    pinned<float> in(tensors * few * steps), out(tensors * few * steps);
    device_memory<float> own(few + 1);
    cudaEvent_t read = nullptr;
    must(cudaEventCreateWithFlags(&read, cudaEventDisableTiming), "cudaEventCreate");
    int wrong = 0;
    {
        reducer<float, update::sum, transport::inproc, Node, fusion::balanced_buffer<64_KiB, 1>> reduce(
            ranks, {{"a", few}, {"b", few}, {"c", few}});
        for (int step = 0; step < steps; ++step) {
            std::size_t const from = tensors * few * static_cast<std::size_t>(step);
            for (std::size_t t = 0; t < tensors; ++t) {
                cudaStream_t const stream = t == 1 ? b.handle : a.handle;
                device_span<float> const to = t == 2 ? device_span<float>(own.at + 1, few) : reduce.tensor(t);
                for (std::size_t i = 0; i < few; ++i)
                    in.at[from + t * few + i] = sample(ranks.rank(), t, i, step);
                must(cudaStreamWaitEvent(stream, read, 0), "cudaStreamWaitEvent");
                must(cudaMemcpyAsync(to.data(), in.at + from + t * few, few * sizeof(float),
                                     cudaMemcpyHostToDevice, stream),
                     "in");
                t == 2 ? reduce.ready(t, to, stream) : reduce.ready(t, stream);
            }
            reduce.wait(a.handle);
            for (std::size_t t = 0; t < tensors; ++t)
                must(cudaMemcpyAsync(out.at + from + t * few, t == 2 ? own.at + 1 : reduce.tensor(t).data(),
                                     few * sizeof(float), cudaMemcpyDeviceToHost, a.handle),
                     "out");
            must(cudaEventRecord(read, a.handle), "cudaEventRecord");
        }
        must(cudaStreamSynchronize(a.handle), "cudaStreamSynchronize");
    }
    for (int step = 0; step < steps; ++step)
        for (std::size_t t = 0; t < tensors; ++t)
            for (std::size_t i = 0; i < few; ++i) {
                float want = 0;
                for (int r = 0; r < ranks.size(); ++r) want += sample(r, t, i, step);
                wrong |= out.at[(static_cast<std::size_t>(step) * tensors + t) * few + i] != want;
            }
    must(cudaEventDestroy(read), "cudaEventDestroy");
    return wrong;
}

// Gradients in two sets of buffers, each with a stream of its own, by turns; the program puts these streams in no order.
template <class Node> int two_sets_by_turns(world& ranks) {
    gpu::use_device(ranks);
    constexpr std::size_t tensors = 6, set = tensors * few;
    int wrong = 0;
    queue streams[2];
    pinned<float> in(set * steps), out(set * steps);
    device_memory<float> own(2 * set);
    {
        reducer<float, update::sum, transport::inproc, Node, fusion::balanced_buffer<64_KiB, 1>> reduce(
            ranks, {{"a", few}, {"b", few}, {"c", few}, {"d", few}, {"e", few}, {"f", few}});
        for (int step = 0; step < steps; ++step) {
            cudaStream_t const stream = streams[step % 2].handle;
            std::size_t const from = set * static_cast<std::size_t>(step);
            float* const to = own.at + set * static_cast<std::size_t>(step % 2);
            for (std::size_t i = 0; i < set; ++i) in.at[from + i] = sample(ranks.rank(), i / few, i, step);
            must(cudaMemcpyAsync(to, in.at + from, set * sizeof(float), cudaMemcpyHostToDevice, stream),
                 "in");
            for (std::size_t t = 0; t < tensors; ++t)
                reduce.ready(t, device_span<float>(to + t * few, few), stream);
            reduce.wait(stream);
            must(cudaMemcpyAsync(out.at + from, to, set * sizeof(float), cudaMemcpyDeviceToHost, stream),
                 "out");
        }
        for (queue const& one : streams) must(cudaStreamSynchronize(one.handle), "cudaStreamSynchronize");
    }
    for (int step = 0; step < steps; ++step)
        for (std::size_t i = 0; i < set; ++i) {
            float want = 0;
            for (int r = 0; r < ranks.size(); ++r) want += sample(r, i / few, i, step);
            wrong |= out.at[set * static_cast<std::size_t>(step) + i] != want;
        }
    return wrong;
}

// In each step others of five tensors are the caller's, in one of three places: lists that are rewritten, come again, or are the
// beginning of others; every few steps the device catches up.
template <class Node> int changing_lists(world& ranks) {
    gpu::use_device(ranks);
    constexpr std::size_t sizes[] = {40000, 8192, 0, 17001, 77}, tensors = std::size(sizes), all = 70000;
    constexpr unsigned masks[] = {0b11011, 0b11000, 0b00101, 0b11101, 0b11101, 0b11101, 0b01011, 0b11111,
                                  0b11111, 0b11111, 0b10010, 0b01010, 0b10010, 0b11000, 0b11011, 0b00000};
    constexpr std::size_t calls = 3 * std::size(masks);
    queue stream;
    pinned<float> in(all * calls), out(all * calls);
    device_memory<float> own(3 * all);
    int wrong = 0;
    auto const sample_of = [](int rank, std::size_t t, std::size_t i, std::size_t call) {
        return static_cast<float>((static_cast<std::size_t>(rank) + 1) *
                                  (100 * t + 10 * (call % 50) + i % 7));
    };
    {
        reducer<float, update::sum, transport::inproc, Node> reduce(
            ranks, layout::of(std::vector<std::size_t>(std::begin(sizes), std::end(sizes))));
        for (std::size_t call = 0; call < calls; ++call) {
            std::size_t at = 0;
            float* const set = own.at + (call % 11 == 5 ? 1 : call % 13 == 6 ? 2 : 0) * all;
            auto const place = [&](std::size_t t) {
                return (masks[call % std::size(masks)] >> t & 1) != 0 ? device_span<float>(set + at, sizes[t])
                                                                      : reduce.tensor(t);
            };
            for (std::size_t t = 0; t < tensors; at += sizes[t++]) {
                for (std::size_t i = 0; i < sizes[t]; ++i)
                    in.at[call * all + at + i] = sample_of(ranks.rank(), t, i, call);
                must(cudaMemcpyAsync(place(t).data(), in.at + call * all + at, sizes[t] * sizeof(float),
                                     cudaMemcpyHostToDevice, stream.handle),
                     "in");
                (masks[call % std::size(masks)] >> t & 1) != 0 ? reduce.ready(t, place(t), stream.handle)
                                                               : reduce.ready(t, stream.handle);
            }
            reduce.wait(stream.handle);
            at = 0;
            for (std::size_t t = 0; t < tensors; at += sizes[t++])
                must(cudaMemcpyAsync(out.at + call * all + at, place(t).data(), sizes[t] * sizeof(float),
                                     cudaMemcpyDeviceToHost, stream.handle),
                     "out");
            if (call % 3 != 0) must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
        }
        must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
    }
    for (std::size_t call = 0; call < calls; ++call) {
        std::size_t at = 0;
        for (std::size_t t = 0; t < tensors; at += sizes[t++])
            for (std::size_t i = 0; i < sizes[t]; ++i) {
                float want = 0;
                for (int r = 0; r < ranks.size(); ++r) want += sample_of(r, t, i, call);
                wrong |= out.at[call * all + at + i] != want;
            }
    }
    return wrong;
}

template <class Node> bool changing_lists_by_threads() {
    return apart([](world&) { return launch_threads(2, changing_lists<Node>, on({"a", "a"})) == 0; });
}

template <class Node> void two_streams_in_a_step() {
    CHECK(launch(2, two_streams<Node>, on({"a", "a"})) == 0);
    CHECK(apart([](world&) { return launch_threads(3, two_streams<Node>, on({"a", "a", "b"})) == 0; }));
    CHECK(launch(2, two_sets_by_turns<Node>, on({"a", "a"})) == 0);
    CHECK(apart([](world&) { return launch_threads(3, two_sets_by_turns<Node>, on({"a", "a", "b"})) == 0; }));
}

// A capture in global mode, in another thread and of a stream of these flags, from before the reducers are made until they
// are gone: neither takes note of the other.
template <class Node> bool beside_a_capture(unsigned flags) {
    return apart([flags](world&) {
        constexpr int n = 2;
        std::atomic<int> prepared{0}, done{0};
        std::atomic<bool> captured{false}, ended{false};
        auto const until = [](auto&& holds) {
            time_point const patience = clock::now() + std::chrono::seconds(60);
            while (!holds() && clock::now() < patience) ::usleep(200);
        };
        bool sound = false;
        std::thread other([&] {
            queue stream(flags);
            device_memory<float> from(few), to(few);
            until([&] { return prepared.load() == n; });
            must(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal),
                 "cudaStreamBeginCapture");
            must(
                cudaMemcpyAsync(to.at, from.at, few * sizeof(float), cudaMemcpyDeviceToDevice, stream.handle),
                "copy");
            captured = true;
            until([&] { return done.load() == n; });
            cudaGraph_t graph = nullptr;
            cudaError_t const result = cudaStreamEndCapture(stream.handle, &graph);
            std::fprintf(stderr, "the capture ends: %s\n", cudaGetErrorName(result));
            sound = result == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess;
            ended = true;
        });
        auto const body = [&](world& ranks) {
            gpu::use_device(ranks);
            int wrong = 0;
            {
                queue stream;
                pinned<float> numbers(few);
                for (std::size_t i = 0; i < few; ++i) numbers.at[i] = sample(ranks.rank(), 0, i, 1);
                ++prepared;
                until([&] { return captured.load(); });
                {
                    reducer<float, update::sum, transport::inproc, Node> reduce(ranks, {{"a", few}});
                    must(cudaMemcpyAsync(reduce.tensor(0).data(), numbers.at, few * sizeof(float),
                                         cudaMemcpyHostToDevice, stream.handle),
                         "in");
                    reduce.ready(0, stream.handle);
                    reduce.wait(stream.handle);
                    must(cudaMemcpyAsync(numbers.at, reduce.tensor(0).data(), few * sizeof(float),
                                         cudaMemcpyDeviceToHost, stream.handle),
                         "out");
                }
                ++done;
                until([&] { return ended.load(); });
                must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
                for (std::size_t i = 0; i < few; ++i)
                    wrong |= numbers.at[i] != sample(0, 0, i, 1) + sample(1, 0, i, 1);
            }
            return wrong;
        };
        std::string const text = said([&] {
            if (launch_threads(n, body) != 0) throw error(errc::mismatch, -1, -1, "test", "wrong sums");
        });
        done = n;
        other.join();
        if (text != "nothing") std::fprintf(stderr, "%s\n", text.c_str());
        return sound && text == "nothing";
    });
}

// Calls with memory of each kind, of a reducer without tensors: what comes out, and on the stand-in what that takes.
template <class Node> int calls_of_every_memory(world& ranks, bool processes) {
    gpu::use_device(ranks);
    reducer<float, update::sum, transport::inproc, Node> reduce(ranks, {});
    queue stream;
    constexpr std::size_t most = 100'000;
    pinned<float> numbers(most);
    auto const n = static_cast<std::size_t>(ranks.size());
    bool wrong = false;
    // Sums, and how many copies within devices, and openings, that took of all ranks.
    struct cost {
        int copies, opened;
    };
    auto const sum = [&](float* at, std::size_t count) {
        auto const counted = [&] {
            ranks.barrier();
            cost const now =
                on_stand_in() ? cost{herring_stand_in_copies(), herring_stand_in_opened()} : cost{0, 0};
            ranks.barrier();
            return now;
        };
        for (std::size_t i = 0; i < count; ++i)
            numbers.at[i] = static_cast<float>(i % 251 + static_cast<std::size_t>(ranks.rank()));
        must(cudaMemcpyAsync(at, numbers.at, count * sizeof(float), cudaMemcpyHostToDevice, stream.handle),
             "in");
        must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
        cost const before = counted();
        reduce.all_reduce({at, count}, stream.handle);
        must(cudaMemcpyAsync(numbers.at, at, count * sizeof(float), cudaMemcpyDeviceToHost, stream.handle),
             "out");
        must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
        cost const after = counted();
        for (std::size_t i = 0; i < count; ++i)
            wrong |= numbers.at[i] != static_cast<float>(i % 251 * n + n * (n - 1) / 2);
        return cost{after.copies - before.copies, after.opened - before.opened};
    };
    auto const costs = [&](char const* what, cost is, int copies, int opened) {
        if (!on_stand_in() || (is.copies == copies && is.opened == opened)) return;
        std::fprintf(stderr, "rank %d: %s: %d copies, not %d; %d opened, not %d\n", ranks.rank(), what,
                     is.copies, copies, is.opened, opened);
        wrong = true;
    };
    bool const reads_others = std::is_same_v<Node, intra_node::nvlink>;
    int const both = processes && reads_others ? 2 : 0; // each opens the other's
    int devices = 0;
    must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    int const pieces = ranks.topology().nodes() > 1 ? 2 : 1; // of `most`: 256 KiB at least, 4 MiB on one node
    bool const copied = reads_others && (processes || devices > 1); // memory that other ranks do not reach
    for (int round = 0; round < 2; ++round) {
        float* own = nullptr;
        must(cudaMalloc(&own, std::size_t{2} << 20), "cudaMalloc");
        costs("cudaMalloc", sum(own, most), 0, both);
        costs("again", sum(own + 4, 1000), 0, 0);
        costs("not aligned", sum(own + 1, 1000), reads_others ? 2 * ranks.size() : 0, 0);
        reduce.forget({own + 10, 5});
        must(cudaFree(own), "cudaFree");
        must(cudaMallocAsync(&own, most * sizeof(float), stream.handle), "cudaMallocAsync");
        costs("cudaMallocAsync", sum(own, most), copied ? 4 * pieces : 0, 0);
        must(cudaFreeAsync(own, stream.handle), "cudaFreeAsync");
        must(cudaMallocManaged(&own, most * sizeof(float)), "cudaMallocManaged");
        costs("cudaMallocManaged", sum(own, most), copied ? 4 * pieces : 0, 0);
        must(cudaFree(own), "cudaFree");
        must(cudaStreamSynchronize(stream.handle), "cudaStreamSynchronize");
        std::string const freed = said([&] { reduce.all_reduce({own, 100}, stream.handle); });
        wrong |= freed.find("bad argument") == std::string::npos || cudaGetLastError() != cudaSuccess;
    }
    return wrong;
}

// A stream that is being captured is refused everywhere, and neither the capture nor the reducer suffers.
template <class Node> bool captured_streams_are_refused() {
    return apart([](world& alone) {
        gpu::use_device(alone);
        reducer<float, update::average, transport::inproc, Node> reduce(alone, {{"a", 100}});
        queue apart_one, blocking(cudaStreamDefault), free_one;
        bool good = true;
        for (queue* const one : {&apart_one, &blocking}) {
            must(cudaStreamBeginCapture(one->handle, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
            std::vector<std::string> texts;
            texts.push_back(said([&] { reduce.ready(0, one->handle); }));
            texts.push_back(said([&] { reduce.all_reduce(reduce.tensor(0), one->handle); }));
            if (one == &blocking) texts.push_back(said([&] { reduce.ready(0, nullptr); }));
            reduce.ready(0, free_one.handle);
            texts.push_back(said([&] { reduce.wait(one->handle); }));
            reduce.wait(free_one.handle);
            cudaGraph_t graph = nullptr;
            good = good && cudaStreamEndCapture(one->handle, &graph) == cudaSuccess &&
                   cudaGraphDestroy(graph) == cudaSuccess && cudaGetLastError() == cudaSuccess;
            for (std::string const& text : texts) {
                bool const told = text.find("bad argument") != std::string::npos &&
                                  text.find(gpu::stream_is_captured) != std::string::npos;
                if (!told) std::fprintf(stderr, "%s\n", text.c_str());
                good = good && told;
            }
            reduce.ready(0, one->handle);
            reduce.wait(one->handle);
        }
        return good && cudaDeviceSynchronize() == cudaSuccess;
    });
}

} // namespace

TEST_CASE("calls: the caller's memory is reduced where it is, opened once, and given back") {
    auto const all = []<class Node>(Node*) {
        auto const body = [](world& ranks) { return calls_of_every_memory<Node>(ranks, false); };
        CHECK(launch(
                  2, [](world& ranks) { return calls_of_every_memory<Node>(ranks, true); }, on({"a", "a"})) ==
              0);
        CHECK(apart([&](world&) { return launch_threads(2, body, on({"a", "a"})) == 0; }));
        CHECK(apart([&](world&) { return launch_threads(3, body, on({"a", "a", "b"})) == 0; }));
    };
    all(static_cast<intra_node::nvlink*>(nullptr));
    all(static_cast<intra_node::pcie_staging*>(nullptr));
}

TEST_CASE("sanitizer: other tensors in each step, and elsewhere") {
    CHECK(changing_lists_by_threads<intra_node::nvlink>());
    CHECK(changing_lists_by_threads<intra_node::pcie_staging>());
    CHECK(changing_lists_by_threads<sums_by_graphs>());
}

TEST_CASE("two streams: in a step, and by turns") {
    two_streams_in_a_step<intra_node::pcie_staging>();
    two_streams_in_a_step<intra_node::nvlink>();
}

TEST_CASE("a capture in global mode goes on in another thread") {
    for (unsigned const flags : {cudaStreamNonBlocking, cudaStreamDefault}) {
        CAPTURE(flags);
        CHECK(beside_a_capture<intra_node::pcie_staging>(flags));
        CHECK(beside_a_capture<staging_with_all>(flags));
        CHECK(beside_a_capture<intra_node::nvlink>(flags));
        CHECK(beside_a_capture<sums_with_all>(flags));
    }
}

TEST_CASE("bad input: a stream that is being captured") {
    CHECK(captured_streams_are_refused<intra_node::pcie_staging>());
    CHECK(captured_streams_are_refused<intra_node::nvlink>());
}

namespace {

// Every call that takes a stream, in steps whose tensors are in the reducer's memory and in the caller's.
template <class Node> bool unread_errors_are_refused() {
    return apart([](world& alone) {
        gpu::use_device(alone);
        queue stream, busy;
        device_memory<float> own(3000);
        reducer<float, update::sum, transport::inproc, Node> reduce(alone, {{"a", 1000}, {"b", 2000}});
        bool good = true;
        auto const all_reduce = [&] { reduce.all_reduce(device_span<float>(own.at, 10), stream.handle); };
        auto const one = [&] { reduce.ready(0, device_span<float>(own.at, 1000), stream.handle); };
        auto const other = [&] { reduce.ready(1, stream.handle); };
        auto const wait = [&] { reduce.wait(stream.handle); };
        auto const wait_until = [&] { (void)reduce.wait(stream.handle, std::chrono::seconds(60)); };
        std::vector<cudaError_t> seen;
        auto const refused = [&](auto&& fails, auto&& call) {
            fails();
            cudaError_t const code = cudaPeekAtLastError();
            std::string const text = said(call);
            bool const told = code != cudaSuccess && text.find("bad argument") != std::string::npos &&
                              text.find(cudaGetErrorName(code)) != std::string::npos &&
                              text.find("the program has not read that") != std::string::npos;
            if (!told) std::fprintf(stderr, "%s: %s\n", cudaGetErrorName(code), text.c_str());
            good = good && told && cudaGetLastError() == code; // still the program's
            if (std::find(seen.begin(), seen.end(), code) == seen.end()) seen.push_back(code);
        };
        auto const all_refused = [&](auto&& fails) {
            refused(fails, all_reduce), all_reduce();
            refused(fails, one), one();
            refused(fails, other), other();
            refused(fails, wait_until), refused(fails, wait), wait();
        };
        for (int step = 0; step < 2; ++step) {
            all_refused([&] { beyond_its_end<<<1, 5000>>>(own.at, own.at); }); // too many threads a block
            all_refused([&] { beyond_its_end<<<0, 32>>>(own.at, own.at); });   // no block
            all_refused([] { (void)cudaSetDevice(99); });
        }
        // Drivers differ in the code of a launch; the stand-in has both.
        if (on_stand_in())
            good = good && seen == std::vector{cudaErrorInvalidValue, cudaErrorInvalidConfiguration,
                                               cudaErrorInvalidDevice};

        // Answers of CUDA's that it may keep like errors are none.
        auto const accepted = [&](auto&& answers) {
            for (auto const& call : {std::function<void()>(all_reduce), {one}, {other}, {wait}})
                answers(), call(), (void)cudaGetLastError();
        };
        static std::atomic<bool> go{false};
        must(cudaLaunchHostFunc(
                 busy.handle,
                 [](void*) {
                     while (!go) std::this_thread::yield();
                 },
                 nullptr),
             "cudaLaunchHostFunc");
        accepted([&] { good = good && cudaStreamQuery(busy.handle) == cudaErrorNotReady; });
        go = true;
        int count = 0, reaches = 0;
        must(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
        if (count > 1) must(cudaDeviceCanAccessPeer(&reaches, 0, 1), "cudaDeviceCanAccessPeer");
        if (reaches != 0) {
            (void)cudaDeviceEnablePeerAccess(1, 0);
            accepted([&] {
                good = good && cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled;
            });
        }
        std::thread([&] { beyond_its_end<<<1, 5000>>>(own.at, own.at); }).join(); // another thread's
        all_reduce(), one(), other(), wait();
        return good && cudaDeviceSynchronize() == cudaSuccess;
    });
}

} // namespace

TEST_CASE("bad input: an error that the program has not read: every call says so, and nothing is lost") {
    CHECK(unread_errors_are_refused<intra_node::pcie_staging>());
    CHECK(unread_errors_are_refused<intra_node::nvlink>());
}

TEST_CASE("bad input: a process that is forked after CUDA was used: what happened, and the way out") {
    CHECK(apart([](world&) {
        int count = 0;
        must(cudaGetDeviceCount(&count), "cudaGetDeviceCount"); // CUDA is used from here on
        return launch(1, [](world& alone) {
                   std::string const text = said([&] { gpu::use_device(alone); });
                   std::fprintf(stderr, "%s\n", text.c_str());
                   bool good = true;
                   for (char const* const part :
                        {"bad state", "this process was forked", "call launch before", "launch_threads"})
                       good = good && text.find(part) != std::string::npos;
                   return good ? 0 : 1;
               }) == 0;
    }));
}

// ---- devices that do not reach each other ---------------------------------------------------------------------------

TEST_CASE("bad input: devices out of each other's reach: the pair is named, and the way out") {
    if (!two_devices("devices out of each other's reach")) return;
    CHECK(launch(
              2,
              [](world& ranks) {
                  int const here = gpu::use_device(ranks);
                  int reaches = 0;
                  must(cudaDeviceCanAccessPeer(&reaches, 0, 1), "cudaDeviceCanAccessPeer");
                  std::string const text = said([&] {
                      reducer<float, transport::inproc, intra_node::nvlink> reduce(ranks, {{"a", 100}});
                  });
                  if (reaches != 0) return text == "nothing" ? 0 : 1;
                  std::fprintf(stderr, "%s\n", text.c_str());
                  bool good = here == ranks.rank();
                  for (char const* const part : {"rank 0", "rank 1", "cannot reach", "pcie_staging"})
                      good = good && text.find(part) != std::string::npos;
                  return good ? 0 : 1;
              },
              on({"a", "a"})) == 0);
}

// Pages that nobody may touch cannot be locked, as those that are more than there are; and they cost nothing.
TEST_CASE("bad input: memory of the host that cannot be locked: how much, and what to do") {
    CHECK(apart([](world& alone) {
        constexpr std::size_t bytes = std::size_t{1} << 30;
        gpu::use_device(alone);
        gpu::cuda_runtime device(alone);
        void* const pages =
            ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) return false;
        std::string const text = said(
            [&] { gpu::cuda_pinned const locked(device, std::span(static_cast<std::byte*>(pages), bytes)); });
        std::fprintf(stderr, "%s\n", text.c_str());
        ::munmap(pages, bytes);
        bool good = device.failed() == nullptr;
        for (char const* const part :
             {"rank 0: construction", "device 0: cudaHostRegister of 1073741824 bytes",
              "use smaller buckets or fewer slots", "ulimit -l"})
            good = good && text.find(part) != std::string::npos;
        // And the device is as it was.
        reducer<float, transport::inproc, intra_node::pcie_staging> reduce(alone, {{"a", 100}});
        reduce.ready(0, nullptr);
        reduce.wait(nullptr);
        return good && cudaDeviceSynchronize() == cudaSuccess;
    }));
}

namespace {

// Lines about shared devices, in the words for processes or for threads, when two ranks with device 0 make several reducers.
int lines_of_sharing(bool by_threads) {
    std::FILE* const kept = std::tmpfile();
    if (kept == nullptr) return -1;
    std::fflush(stderr);
    int const saved = ::dup(2);
    ::dup2(::fileno(kept), 2);
    auto const body = [](world& ranks) {
        must(cudaSetDevice(0), "cudaSetDevice");
        for (int round = 0; round < 2; ++round) {
            reducer<float, transport::inproc, intra_node::pcie_staging> one(ranks, {{"a", 100}});
            reducer<float, transport::inproc, intra_node::nvlink> two(ranks, {{"a", 100}});
        }
        return 0;
    };
    bool const good =
        by_threads ? apart([&](world&) { return launch_threads(2, body) == 0; }) : launch(2, body) == 0;
    std::fflush(stderr);
    ::dup2(saved, 2);
    ::close(saved);
    std::rewind(kept);
    int lines = 0;
    char line[1000];
    while (std::fgets(line, sizeof line, kept) != nullptr) {
        std::fputs(line, stderr);
        lines += std::strstr(line, "herring: rank 0: 2 ranks of this node share device 0") != nullptr &&
                 std::strstr(line, by_threads ? "threads of one process" : "by turns") != nullptr;
    }
    std::fclose(kept);
    return good ? lines : -1;
}

enum class end { killed, thrown };

/// What ranks tell of each other's end, in memory that they share.
struct board {
    static constexpr int most = 4;
    std::atomic<int> waiting{0};
    std::atomic<std::int64_t> struck{0}; // when, in ns
    double seconds[most] = {};           // from then to the error
    char text[most][600] = {};

    static std::int64_t now() noexcept {
        return clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    }
};

// One rank of several ends, while the others wait for it. Returns what is wrong with what they were told, or nothing.
template <class Node> std::string left_alone(int n, end how, bool by_threads) {
    constexpr int victim = 1;
    constexpr double bound = 5; // a destructor may wait for 2 s before a thrown error is announced
    void* const shared =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return "no memory";
    board& b = *new (shared) board;
    auto const body = [&](world& ranks) {
        std::optional<queue> own;
        if constexpr (Node::facts.device_memory) {
            gpu::use_device(ranks);
            own.emplace();
        }
        reducer<float, update::sum, transport::inproc, Node> reduce(ranks, {{"a", 100000}, {"b", 3000}});
        auto const ready = [&](std::size_t t) {
            if constexpr (Node::facts.device_memory)
                reduce.ready(t, own->handle);
            else
                reduce.ready(t);
        };
        auto const wait = [&] {
            if constexpr (Node::facts.device_memory)
                reduce.wait(own->handle);
            else
                reduce.wait();
        };
        ready(0), ready(1), wait(); // a step that is sound
        ready(0);
        if (ranks.rank() == victim) {
            time_point const patience = clock::now() + std::chrono::seconds(60);
            while (b.waiting.load() < n - 1 && clock::now() < patience) ::usleep(1000);
            ::usleep(100000);
            b.struck.store(board::now());
            if (how == end::killed) ::kill(::getpid(), SIGKILL);
            throw error(errc::bad_argument, victim, -1, "test", "the program gave up");
        }
        std::string const text = said([&] {
            ready(1);
            b.waiting.fetch_add(1);
            wait();
        });
        b.seconds[ranks.rank()] = static_cast<double>(board::now() - b.struck.load()) * 1e-9;
        std::snprintf(b.text[ranks.rank()], sizeof b.text[0], "%s", text.c_str());
        return 0;
    };
    launch_options options;
    options.timeout = std::chrono::seconds(120);
    std::string wrong;
    if (by_threads) {
        if (!apart([&](world&) {
                return said([&] { launch_threads(n, body); }).find("gave up") != std::string::npos;
            }))
            wrong += "launch_threads does not say why\n";
    } else {
        int const status = launch(n, body, options), due = how == end::killed ? 128 + SIGKILL : 1;
        if (status != due) wrong += "status " + std::to_string(status) + "\n";
    }
    for (int r = 0; r < n; ++r) {
        if (r == victim) continue;
        std::string const text = b.text[r];
        if (text.find("rank " + std::to_string(victim)) == std::string::npos || b.struck.load() == 0 ||
            !(b.seconds[r] >= 0 && b.seconds[r] < bound))
            wrong +=
                "rank " + std::to_string(r) + " after " + std::to_string(b.seconds[r]) + " s: " + text + "\n";
    }
    ::munmap(shared, sizeof(board));
    return wrong;
}

// A rank is killed whose own stream is held up: what another has put behind it never ends, but its destructor does.
std::string destroyed_behind_the_dead() {
    constexpr int victim = 1;
    constexpr double bound =
        10; // 2 s for its queues and 2 s for the other to close its memory, and the machine's hurry
    void* const shared =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return "no memory";
    board& b = *new (shared) board;
    int const status = launch(2, [&](world& ranks) {
        gpu::use_device(ranks);
        queue stream;
        std::optional<reducer<float, update::sum, transport::inproc, intra_node::nvlink>> reduce;
        reduce.emplace(ranks, layout{{"a", 100000}});
        reduce->ready(0, stream.handle);
        reduce->wait(stream.handle); // a step that is sound
        if (ranks.rank() == victim)
            must(cudaLaunchHostFunc(
                     stream.handle, [](void*) { ::sleep(600); }, nullptr),
                 "cudaLaunchHostFunc");
        reduce->ready(0, stream.handle);
        reduce->wait(stream.handle); // the host waits for no device
        b.waiting.fetch_add(1);
        time_point const patience = clock::now() + std::chrono::seconds(60);
        while (b.waiting.load() < 2 && clock::now() < patience) ::usleep(1000);
        if (ranks.rank() == victim) ::kill(::getpid(), SIGKILL);
        b.struck.store(board::now());
        reduce.reset();
        b.seconds[0] = static_cast<double>(board::now() - b.struck.load()) * 1e-9;
        return 0;
    });
    double const took = b.seconds[0];
    ::munmap(shared, sizeof(board));
    std::string wrong;
    if (status != 128 + SIGKILL) wrong += "status " + std::to_string(status) + "\n";
    if (!(took > 0 && took < bound)) wrong += "destroyed after " + std::to_string(took) + " s\n";
    return wrong;
}

template <class Node> void others_are_told() {
    for (int const n : {2, 3}) {
        CAPTURE(n);
        CHECK(left_alone<Node>(n, end::killed, false) == "");
        CHECK(left_alone<Node>(n, end::thrown, false) == "");
        CHECK(left_alone<Node>(n, end::thrown, true) == "");
    }
}

} // namespace

TEST_CASE("fewer devices than ranks: one line a process and device, however many reducers") {
    CHECK(lines_of_sharing(false) == 1);
    CHECK(lines_of_sharing(true) == 1);
}

TEST_CASE("a rank that is killed or throws ends the others' wait: pcie_staging") {
    others_are_told<intra_node::pcie_staging>();
}
TEST_CASE("a rank that is killed or throws ends the others' wait: nvlink") {
    others_are_told<intra_node::nvlink>();
}
TEST_CASE(
    "anywhere: a rank that is killed or throws ends the others' wait: shared_memory, the test's own test") {
    others_are_told<intra_node::shared_memory>();
}

TEST_CASE("a rank that is killed while its stream is held up: the other's destructor ends: nvlink") {
    CHECK(destroyed_behind_the_dead() == "");
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
        int const result = context.run();
        int const misused = on_stand_in() ? herring_stand_in_complaints() : 0;
        if (misused != 0) std::printf("FAILED: cuda: %d misuses of CUDA, which are told above\n", misused);
        return misused != 0 ? 1 : result;
    }
    context.addFilter("test-case", "anywhere*,nowhere*");
    int const result = context.run();
    std::puts("SKIPPED: cuda: no GPU here: what runs on one was compiled and not run");
    return result;
}
