// herring: the pipeline of intra_node::nccl over a model of NCCL: results, the order of calls, what is refused, and failures.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/nccl.hpp"

#include "conformance/intra_node_suite.hpp"
#include "gpu_model/host_nccl.hpp"
#include "herring/progress/progress.hpp"
#include "herring/update/any.hpp"
#include "unit/gpu/pipeline/steps.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace gpu_test;
using pipeline = gpu::basic_nccl<gpu::host_runtime, gpu::host_nccl,
                                 gpu::peer_sums_tuning{.slot_count = 2, .split_bytes = 4_KiB}>;
static_assert(intra_node_policy<pipeline> && pipeline::facts.device_memory && pipeline::facts.host_staging);
static_assert(!pipeline::facts.rank_order && intra_node_facts{}.rank_order);

namespace {

using names = std::vector<std::string>;

// The model of NCCL as a test wants it.
struct model : gpu::host_nccl_options {
    model() { gpu::host_nccl::current = this; }
    ~model() { gpu::host_nccl::current = &gpu::host_nccl::usual; }
};

// Values whose sums and products are exact in any order, also in 16 bits; of so many ranks an average is one, too.
template <class T, class Update> T value(int rank, std::size_t i, int step) {
    auto const of = static_cast<unsigned>(rank + step) * 7 + static_cast<unsigned>(i);
    if constexpr (std::is_same_v<Update, update::product>) return static_cast<T>(of % 2 == 0 ? 1 : 2);
    return static_cast<T>(static_cast<accumulator<T>>(of % 4 * 12));
}
template <class T, class Update> T result(int ranks, std::size_t i, int step) {
    using wide = accumulator<T>;
    wide total = static_cast<wide>(value<T, Update>(0, i, step));
    for (int r = 1; r < ranks; ++r)
        total = Update::combine(total, static_cast<wide>(value<T, Update>(r, i, step)));
    return static_cast<T>(Update::finish(total, ranks));
}

// A step's work of one tensor or buffer, in a stream.
template <class T, class Update> struct kernels {
    T* at;
    std::size_t count;
    int rank, ranks, step;
    std::size_t wrong = 0;
    static void write(void* self) {
        auto const& k = *static_cast<kernels*>(self);
        for (std::size_t i = 0; i < k.count; ++i) k.at[i] = value<T, Update>(k.rank, i, k.step);
    }
    static void read(void* self) {
        auto& k = *static_cast<kernels*>(self);
        for (std::size_t i = 0; i < k.count; ++i)
            k.wrong += !(k.at[i] == result<T, Update>(k.ranks, i, k.step));
    }
};

// The rule of calls beside steps: of a list the last.
template <class Update> struct rule_of_calls {
    using type = Update;
    template <class Reducer, class... Arguments> static void call(Reducer& reduce, Arguments... arguments) {
        reduce.all_reduce(arguments...);
    }
};
template <class First, class Last> struct rule_of_calls<update::any<First, Last>> {
    using type = Last;
    template <class Reducer, class... Arguments> static void call(Reducer& reduce, Arguments... arguments) {
        reduce.all_reduce(arguments..., Last());
    }
};

// Steps, and buffers beside them. Returns wrong elements and errors.
template <class T, class Update, class Transport = transport::inproc, class... More>
std::string sound(names const& nodes) {
    launch_options options;
    options.nodes = nodes;
    std::atomic<std::size_t> wrong{0};
    std::vector<std::string> ended(nodes.size());
    launch_threads(
        static_cast<int>(nodes.size()),
        [&](world& ranks) {
            try {
                using work = kernels<T, Update>;
                using call = kernels<T, typename rule_of_calls<Update>::type>;
                std::vector<std::size_t> const sizes{700, 0, 3, 5001, 17, 1024, 1};
                std::deque<work> all;
                std::deque<call> calls;
                {
                    reducer<T, Update, Transport, pipeline, fusion::balanced_buffer<8_KiB, 1>, More...>
                        reduce(ranks, layout::of(sizes));
                    gpu::host_runtime device(ranks);
                    gpu::host_runtime::memory buffer(device, 9000 * sizeof(T));
                    gpu::host_runtime::stream in(device);
                    auto const launch_of = [&](auto& kept, T* at, std::size_t count, int step,
                                               void (*what)(void*)) {
                        kept.push_back({at, count, ranks.rank(), ranks.size(), step});
                        gpu::host_runtime::launch(in.handle(), what, &kept.back());
                    };
                    auto const launch = [&](auto... how) { launch_of(all, how...); };
                    for (int step = 0; step < 3; ++step) {
                        for (std::size_t t = 0; t < sizes.size(); ++t) {
                            auto const at = reduce.tensor(t);
                            launch(at.data(), at.size(), step, work::write);
                            reduce.ready(t, in.handle());
                        }
                        reduce.wait(in.handle());
                        for (std::size_t t = 0; t < sizes.size(); ++t)
                            launch(reduce.tensor(t).data(), sizes[t], step, work::read);
                        T* const at = reinterpret_cast<T*>(buffer.data());
                        std::size_t const count = step == 0 ? 9000 : 5;
                        launch_of(calls, at, count, step, call::write);
                        rule_of_calls<Update>::call(reduce, device_span<T>(at, count), in.handle());
                        launch_of(calls, at, count, step, call::read);
                    }
                }
                for (work const& one : all) wrong += one.wrong;
                for (call const& one : calls) wrong += one.wrong;
            } catch (error const& why) {
                ended[static_cast<std::size_t>(ranks.rank())] = why.what();
                ranks.fail(why.why());
            }
            return 0;
        },
        options);
    std::string text;
    for (std::string const& one : ended) text += one;
    return wrong == 0 ? text : text + std::to_string(wrong.load()) + " wrong elements";
}

// Small chunks, two hops: many rows, and rows that end early.
struct small_chunks : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "small_chunks";
    static constexpr transport_facts facts{
        .keeps_order = true,
        .abandons = true,
        .envelope_bytes = inproc::facts.envelope_bytes,
        .tuning = {.chunk_bytes = 4 << 10, .window_bytes = 16 << 10, .one_hop_bytes = 1 << 10}};
};
struct on_device : small_chunks {
    using small_chunks::small_chunks;
    static constexpr char const* name = "on_device";
    static constexpr transport_facts facts{.keeps_order = true,
                                           .device_memory = true,
                                           .abandons = true,
                                           .envelope_bytes = inproc::facts.envelope_bytes,
                                           .tuning = small_chunks::facts.tuning};
    void register_device_memory(std::span<std::byte>, int) noexcept {}
};

} // namespace

TEST_CASE("nccl: one node is all-reduces alone, several are reduce-scatters and all-gathers; the results are "
          "right") {
    {
        model nccl;
        gpu::host_machine machine;
        CHECK(sound<float, update::sum>({"a", "a", "a"}) == "");
        CHECK(nccl.all_reduces > 0);
        CHECK(nccl.reduce_scatters + nccl.all_gathers == 0);
    }
    model nccl;
    gpu::host_machine machine;
    CHECK(sound<float, update::sum>({"a", "a", "b", "b"}) == "");
    CHECK(nccl.all_reduces == 0);
    CHECK(nccl.reduce_scatters > 0);
    CHECK(nccl.reduce_scatters == nccl.all_gathers);
    CHECK(nccl.closes == 4);
    CHECK(nccl.aborts == 0);
}

TEST_CASE("nccl: the plan says that bits may differ, where ranks share a node") {
    model nccl;
    gpu::host_machine machine;
    for (names const& nodes : {names{"a", "a"}, names{"a", "b"}}) {
        std::string text[2];
        launch_options options;
        options.nodes = nodes;
        launch_threads(
            2,
            [&](world& ranks) {
                reducer<float, transport::inproc, pipeline> reduce(ranks, {{"a", 100}});
                text[ranks.rank()] = to_string(reduce.plan());
                return 0;
            },
            options);
        CHECK((text[0].find("combined in no order") != std::string::npos) == (nodes[0] == nodes[1]));
        CHECK(text[0] == text[1]);
    }
}

TEST_CASE("nccl: every rule, type and shape of nodes") {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        CAPTURE(seed);
        model nccl;
        nccl.under_way = seed == 1 ? 0 : 3;
        gpu::host_machine machine({.seed = seed, .workers = static_cast<int>(seed)});
        for (names const& nodes : {names{"a"}, names{"a", "b"}, names{"a", "a", "a"},
                                   names{"a", "b", "a", "a", "b"}, names{"a", "a", "a", "b", "c", "c"}}) {
            CAPTURE(nodes.size());
            CHECK(sound<float, update::sum>(nodes) == "");
            CHECK(sound<bfloat16, update::sum, small_chunks>(nodes) == "");
        }
        names const even{"a", "a", "b", "b"};
        CHECK(sound<float, update::any<update::sum, update::max>>({"a", "a"}) == "");
        CHECK(sound<float, update::any<update::min, update::average>, small_chunks>(even) == "");
        CHECK(sound<float, update::average, small_chunks>(even) == "");
        CHECK(sound<float16, update::average>({"a", "a"}) == "");
        CHECK(sound<bfloat16, update::average, on_device>(even) == "");
        CHECK(sound<double, update::min, small_chunks>(even) == "");
        CHECK(sound<std::int64_t, update::max>(even) == "");
        CHECK(sound<std::uint32_t, update::product>(even) == "");
        CHECK(sound<std::int32_t, update::sum, on_device>(even) == "");
        CHECK(sound<float, update::sum, small_chunks, progress::thread>(even) == "");
        CHECK_FALSE(nccl.mixed);
        CHECK(machine.device_used == 0);
        CHECK(machine.pinned_used == 0);
    }
}

TEST_CASE("nccl: sound steps, also when a rank leaves with its queues full") {
    model nccl;
    sound_steps<pipeline>();
    CHECK_FALSE(nccl.mixed);
}

TEST_CASE("nccl: any call of the device's may fail") {
    model nccl;
    any_call_may_fail<pipeline>();
}

TEST_CASE(
    "nccl: no device memory, no pinned memory, no machine: an error on every rank, and nothing left behind") {
    model nccl;
    every_rank_is_told_what_there_is_not<pipeline>();
}

TEST_CASE("nccl: memory of the host or of another device, and a size that differs, are refused") {
    model nccl;
    wrong_memory_is_refused<pipeline>();
}

TEST_CASE("nccl: any call of NCCL's may fail, on any rank: its error on every rank, and nobody hangs") {
    for (names const& nodes : {names{"a", "a"}, names{"a", "a", "b", "b"}})
        for (std::uint64_t const number : {1u, 2u, 3u, 4u})
            for (int rank = 0; rank < 2; ++rank) {
                CAPTURE(number);
                CAPTURE(rank);
                CAPTURE(nodes.size());
                model nccl;
                nccl.fail_rank = rank;
                nccl.fail_at = number;
                gpu::host_machine machine({.seed = number});
                std::vector<std::string> const ended = run<pipeline>(nodes);
                for (std::string const& one : ended) {
                    CAPTURE(one);
                    CHECK(one.find("device error: device " + std::to_string(rank)) != std::string::npos);
                    CHECK(one.find("a call was made to fail; NCCL_DEBUG=WARN says more") !=
                          std::string::npos);
                }
                CHECK(machine.device_used == 0);
                CHECK(machine.pinned_used == 0);
            }
}

TEST_CASE("nccl: two ranks of one device are refused before NCCL is asked") {
    model nccl;
    gpu::host_machine machine({.devices = 1});
    static std::string said[3];
    launch_options options;
    options.nodes = {"a", "a", "b"};
    launch_threads(
        3,
        [](world& ranks) {
            try {
                reducer<float, transport::inproc, pipeline> reduce(ranks, {{"a", 100}});
            } catch (error const& why) {
                said[ranks.rank()] = why.what();
            }
            return 0;
        },
        options);
    for (std::string const& one : said) {
        CAPTURE(one);
        CHECK(
            one.find(
                "construction: unsupported (rank 1): it has the device of rank 0, and NCCL takes one rank a "
                "device") != std::string::npos);
        CHECK(one.find("intra_node::nvlink") != std::string::npos);
    }
    CHECK(nccl.aborts + nccl.closes == 0);
}

TEST_CASE("nccl: a communicator that is never connected ends with the world's timeout, on every rank") {
    model nccl;
    nccl.never_joins = true;
    gpu::host_machine machine;
    static std::string said[2];
    launch_options options;
    options.nodes = {"a", "a"};
    options.default_timeout = std::chrono::seconds(3); // for what comes before NCCL, too, on a busy machine
    launch_threads(
        2,
        [](world& ranks) {
            try {
                reducer<float, transport::inproc, pipeline> reduce(ranks, {{"a", 100}});
            } catch (error const& why) {
                said[ranks.rank()] = why.what();
            }
            return 0;
        },
        options);
    for (std::string const& one : said) {
        CAPTURE(one);
        CHECK(one.find("timeout: NCCL has not connected the ranks of this node") != std::string::npos);
    }
    CHECK(machine.device_used == 0);
}

TEST_CASE("nccl: when the engine ends, a stream that waits for a rank that is gone goes on") {
    struct gate {
        std::atomic<bool> open{false};
        static void kernel(void* self) {
            auto const until = clock::now() + std::chrono::seconds(40);
            while (!static_cast<gate*>(self)->open.load() && clock::now() < until) std::this_thread::yield();
        }
    } held;
    for (names const& nodes : {names{"a", "a"}, names{"a", "a", "b"}}) {
        CAPTURE(nodes.size());
        held.open = false;
        model nccl;
        gpu::host_machine machine({.workers = 4});
        std::atomic<bool> there{false}, gone{false}, goes_on{false};
        std::string said;
        launch_options options;
        options.nodes = nodes;
        auto const body = [&](world& ranks) {
            gpu::host_runtime device(ranks);
            gpu::host_runtime::stream in(device);
            reducer<float, update::sum, transport::inproc, pipeline> reduce(ranks, {{"a", 1000}});
            gpu::host_runtime::event after(device, false);
            if (ranks.rank() == 1) gpu::host_runtime::launch(in.handle(), gate::kernel, &held);
            // On one node the host waits for no device, and the stream for the other rank's.
            reduce.ready(0, in.handle());
            if (nodes.size() == 2) reduce.wait(in.handle());
            device.record(after, in.handle());
            if (ranks.rank() == 0) there = true;
            if (ranks.rank() == 1) {
                while (!there) std::this_thread::yield();
                ranks.fail(failure::make(errc::bad_argument, 1, -1, "test", "it has had enough"));
                gone = true;
            }
            while (!gone) std::this_thread::yield(); // nobody leaves before
            if (ranks.rank() != 0) return 0;
            try {
                if (nodes.size() == 2) reduce.ready(0, in.handle());
                reduce.wait(in.handle());
            } catch (error const& why) {
                said = why.what();
            }
            auto const until = clock::now() + std::chrono::seconds(20);
            while (!device.done(after) && clock::now() < until) std::this_thread::yield();
            goes_on = device.done(after);
            held.open = true;
            return 0;
        };
        launch_threads(static_cast<int>(nodes.size()), body, options);
        held.open = true;
        CHECK_MESSAGE(said.find("it has had enough") != std::string::npos, said);
        CHECK(goes_on);
    }
}

TEST_CASE("nccl: the suite of intra-node reducers") {
    model nccl;
    gpu::host_machine machine;
    CHECK(conformance::text(conformance::intra_node_suite<pipeline>()) == "");
}
