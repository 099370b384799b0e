// herring: the pipeline of intra_node::pcie_staging when things go wrong; what it computes is in tests/conformance/gpu_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/pcie_staging.hpp"

#include "herring/trace/timeline.hpp"

#include "unit/gpu/pipeline/steps.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace gpu_test;
using pipeline = gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.piece_bytes = 64_KiB}>;
static_assert(intra_node_policy<pipeline> && pipeline::facts.device_memory && pipeline::facts.host_staging);

// Whatever the cores of this machine are. A tensor of 40,000 elements is cut into parts of which each thread has chunks.
using in_threads = gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.slot_count = 3,
                                                                                  .local_chunk_bytes = 4_KiB,
                                                                                  .split_bytes = 64_KiB,
                                                                                  .piece_bytes = 64_KiB,
                                                                                  .sum_threads = 2}>;
using in_the_one_that_polls =
    gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.piece_bytes = 64_KiB, .sum_threads = 0}>;
static_assert(pipeline::facts.sums_in_threads && in_threads::facts.sums_in_threads &&
              !in_the_one_that_polls::facts.sums_in_threads);

TEST_CASE("staging: sound steps, also when a rank leaves with its queues full") {
    sound_steps<pipeline>();
    sound_steps<in_the_one_that_polls>();
    sound_steps<in_threads, 16>();
}

TEST_CASE("staging: any call of the device's may fail") {
    any_call_may_fail<pipeline>();
    any_call_may_fail<gpu::basic_pcie_staging<gpu::host_runtime,
                                              gpu::staging_tuning{.piece_bytes = 64_KiB, .graphs = true}>>();
    any_call_may_fail<in_threads, 16>();
}

TEST_CASE("staging: no device memory, no pinned memory, no machine: an error on every rank, and nothing left "
          "behind") {
    every_rank_is_told_what_there_is_not<pipeline>();
}

TEST_CASE("staging: memory of the host or of another device, and a size that differs, are refused") {
    wrong_memory_is_refused<pipeline>();
}

namespace {

// Sums, but no element while the gate is closed, for at most 60 s.
struct gated : update::sum {
    static constexpr char const* name = "gated";
    static constexpr update_facts facts{};
    static inline std::atomic<bool> open{false};
    static inline std::atomic<int> waiting{0};
    static inline std::atomic<int> given_up{0}; // ranks
    static void close() {
        open = false;
        waiting = given_up = 0;
    }
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept {
        if (!open.load()) {
            waiting.fetch_add(1);
            auto const until = clock::now() + std::chrono::seconds(60);
            while (!open.load() && clock::now() < until) std::this_thread::yield();
        }
        return a + b;
    }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};
using gated_reducer = reducer<float, gated, transport::inproc, in_threads>;

// What each of two ranks says of a step whose sums never end. `meanwhile(world)`: once all of their threads sum.
template <class Meanwhile>
std::vector<std::string> while_threads_sum(std::chrono::milliseconds deadline, Meanwhile const& meanwhile) {
    gated::close();
    gpu::host_machine machine({.workers = 2});
    std::vector<std::string> said(2);
    launch_threads(2, [&](world& w) {
        {
            gated_reducer reduce(w, {{"a", 100'000}});
            gpu::host_runtime device(w);
            gpu::host_runtime::stream own(device);
            reduce.ready(0, own.handle());
            while (gated::waiting.load() < 4) {
                reduce.poll();
                std::this_thread::yield();
            }
            meanwhile(w);
            status const ended = reduce.wait(own.handle(), deadline);
            said[static_cast<std::size_t>(w.rank())] = ended.ok() ? "nothing" : ended.why().message();
            if (gated::given_up.fetch_add(1) == 1) gated::open = true;
        } // its threads end, with parts that nobody has summed behind them
        return 0;
    });
    CHECK(machine.pinned_used == 0);
    CHECK(machine.device_used == 0);
    return said;
}

} // namespace

TEST_CASE("staging: while threads sum, this rank polls, a deadline passes, and each rank says that its sum "
          "is late") {
    for (std::string const& text : while_threads_sum(std::chrono::milliseconds(300), [](world&) {})) {
        CAPTURE(text);
        CHECK(text.find("timeout") != std::string::npos);
        CHECK(text.find("share of the node's sum") != std::string::npos);
    }
}

TEST_CASE("staging: while threads sum, a rank fails, and the others are told before the sum ends") {
    auto const said = while_threads_sum(std::chrono::seconds(60), [](world& w) {
        if (w.rank() == 1) w.fail(failure::make(errc::device, 1, -1, "test", "gave up"));
    });
    for (std::string const& text : said) {
        CAPTURE(text);
        CHECK(text.find("gave up") != std::string::npos);
    }
}

TEST_CASE(
    "staging: all_reduce of a buffer beside threads that sum, and small ones that the polling thread sums") {
    gpu::host_machine machine({.workers = 2});
    gated::close();
    gated::open = true;
    std::atomic<int> wrong{0};
    launch_threads(2, [&](world& w) {
        gated_reducer reduce(w, {{"a", 40'000}, {"b", 40'000}});
        gpu::host_runtime device(w);
        for (std::size_t const elements : {100u, 3'000u, 40'000u, 200'000u}) {
            gpu::host_runtime::memory memory(device, elements * sizeof(float));
            gpu::host_runtime::stream own(device);
            auto* const at = reinterpret_cast<float*>(memory.data());
            struct job {
                float* at;
                std::size_t count;
                float value;
                int wrong;
            } of{at, elements, static_cast<float>(w.rank() + 1), 0};
            gpu::host_runtime::launch(
                own.handle(),
                [](void* self) {
                    auto& j = *static_cast<job*>(self);
                    for (std::size_t i = 0; i < j.count; ++i) j.at[i] = j.value + static_cast<float>(i % 100);
                },
                &of);
            reduce.all_reduce(device_span<float>(at, elements), own.handle());
            gpu::host_runtime::launch(
                own.handle(),
                [](void* self) {
                    auto& j = *static_cast<job*>(self);
                    for (std::size_t i = 0; i < j.count; ++i)
                        j.wrong += j.at[i] != 3 + 2 * static_cast<float>(i % 100);
                },
                &of);
            gpu::host_machine::current()->drain(*own.handle());
            wrong += of.wrong;
        }
        return 0;
    });
    CHECK(wrong == 0);
}

namespace {

// Of each execution: the events that copies are seen by, beside what they stand between.
std::map<std::uint32_t, std::vector<trace_event>> events_of(timeline_data const& of) {
    std::map<std::uint32_t, std::vector<trace_event>> all;
    for (timeline_record const& r : of.records)
        if (r.what >= trace_event::to_host_begin || r.what == trace_event::fold_begin ||
            r.what == trace_event::bucket_reduced)
            all[r.execution].push_back(r.what);
    return all;
}

} // namespace

TEST_CASE("staging: a timeline has each bucket's copies, before the sum and behind the result") {
    using enum trace_event;
    gpu::host_machine machine({.seed = 3});
    launch_options options;
    options.nodes = {"a", "b"};
    std::vector<timeline_data> found(2);
    launch_threads(
        2,
        [&](world& ranks) {
            reducer<float, transport::inproc, pipeline, trace::timeline<1024>,
                    fusion::balanced_buffer<4096, 1>>
                reduce(ranks, {{"a", 3000}, {"b", 500}, {"c", 2500}});
            gpu::host_runtime device(ranks);
            gpu::host_runtime::stream in(device);
            for (int step = 0; step < 2; ++step) {
                for (std::size_t t = 0; t < 3; ++t) reduce.ready(t, in.handle());
                reduce.wait(in.handle());
            }
            found[static_cast<std::size_t>(ranks.rank())] = reduce.trace().data();
        },
        options);
    for (timeline_data const& one : found) {
        auto const all = events_of(one);
        CHECK(all.size() >= 4);
        for (auto const& each : all) {
            std::vector<trace_event> const& events = each.second;
            CAPTURE(each.first);
            std::vector<trace_event> due{to_host_begin, to_host_end, fold_begin, bucket_reduced,
                                         to_device_begin};
            if (events.size() > due.size()) due.push_back(to_device_end);
            CHECK(events == due);
        }
    }
}
