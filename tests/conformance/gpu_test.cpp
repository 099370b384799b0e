// herring: the pipelines of GPUs on the model of a device: the same bits as on the host, whatever the order of its queues.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/intra_node_suite.hpp"

#include "brain_float.hpp"
#include "doctest/doctest.h"

#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace herring;
using namespace herring::conformance;

namespace {

// Few slots, and buckets that are cut; by graphs, as they come.
using staging = gpu::basic_pcie_staging<
    gpu::host_runtime, gpu::staging_tuning{.slot_count = 2, .split_bytes = 4_KiB, .piece_bytes = 64_KiB}>;
using peer_sums =
    gpu::basic_nvlink<gpu::host_runtime,
                      gpu::peer_sums_tuning{.slot_count = 2, .split_bytes = 4_KiB, .piece_bytes = 64_KiB}>;
using staging_by_graphs =
    gpu::basic_pcie_staging<gpu::host_runtime,
                            gpu::staging_tuning{.slot_count = 2, .piece_bytes = 64_KiB, .graphs = true}>;
using sums_by_graphs =
    gpu::basic_nvlink<gpu::host_runtime,
                      gpu::peer_sums_tuning{.slot_count = 2, .piece_bytes = 64_KiB, .graphs = true}>;
// Each of the larger tensors, times eight, has chunks for all threads of a node of three.
using staging_in_threads =
    gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.slot_count = 2,
                                                                   .local_chunk_bytes = 4_KiB,
                                                                   .split_bytes = 128_KiB,
                                                                   .piece_bytes = 64_KiB,
                                                                   .sum_threads = 2}>;
using fusion_of_little = fusion::balanced_buffer<8_KiB, 1>;
using names = std::vector<std::string>;

std::vector<std::size_t> sizes{700, 0, 3, 5001, 17, 1024, 2333, 1, 900, 33, 6000};

// Any bits: most are numbers between -8 and 8, some are zeroes, infinities and NaNs.
template <class T> T value(int rank, std::size_t tensor, std::size_t i, int step) {
    std::uint64_t mixed =
        (static_cast<std::uint64_t>(rank) << 48 ^ tensor << 40 ^ static_cast<std::uint64_t>(step) << 32 ^ i) *
        0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
    mixed *= 0xbf58476d1ce4e5b9u;
    mixed ^= mixed >> 32;
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(mixed);
    } else {
        if (mixed % 1000 == 0) return static_cast<T>(-0.0f);
        if (mixed % 1000 == 1) return static_cast<T>(__builtin_inff());
        if (mixed % 1000 == 2) return static_cast<T>(-__builtin_inff());
        if (mixed % 1000 == 3) return static_cast<T>(__builtin_nanf(""));
        return static_cast<T>(
            static_cast<float>(static_cast<std::int32_t>(mixed >> 8 & 0xffffff) - 0x800000) * 0x1p-20f);
    }
}

// What a rank puts into its device's queue, in place of kernels.
template <class T> struct kernels {
    struct fill {
        T* to;
        std::size_t count, tensor;
        int rank, step;
        static void run(void* self) {
            auto const& me = *static_cast<fill*>(self);
            for (std::size_t i = 0; i < me.count; ++i) me.to[i] = value<T>(me.rank, me.tensor, i, me.step);
        }
    };
    struct keep {
        T const* from;
        std::size_t count;
        T* to;
        static void run(void* self) {
            auto const& me = *static_cast<keep*>(self);
            if (me.count > 0) std::memcpy(static_cast<void*>(me.to), me.from, me.count * sizeof(T));
        }
    };
    std::deque<fill> fills; // queues hold pointers to them
    std::deque<keep> keeps;
};

constexpr int steps = 4;

template <class T> std::size_t place(int rank, int step) {
    std::size_t all = 0;
    for (std::size_t const s : sizes) all += s;
    return (static_cast<std::size_t>(rank) * steps + static_cast<std::size_t>(step)) * all;
}

// All results of all ranks and steps, by the host.
template <class T, class Update> std::vector<T> on_host(names const& nodes) {
    std::vector<T> out(place<T>(static_cast<int>(nodes.size()), 0));
    launch_options options;
    options.nodes = nodes;
    launch_threads(
        static_cast<int>(nodes.size()),
        [&](world& ranks) {
            reducer<T, Update, transport::inproc, intra_node::shared_memory, fusion_of_little> reduce(
                ranks, layout::of(sizes));
            for (int step = 0; step < steps; ++step) {
                for (std::size_t t = 0; t < sizes.size(); ++t) {
                    auto const at = reduce.tensor(t);
                    for (std::size_t i = 0; i < at.size(); ++i) at[i] = value<T>(ranks.rank(), t, i, step);
                    reduce.ready(t);
                }
                reduce.wait();
                T* to = out.data() + place<T>(ranks.rank(), step);
                for (std::size_t t = 0; t < sizes.size(); ++t)
                    for (T const v : reduce.tensor(t)) *to++ = v;
            }
            return 0;
        },
        options);
    return out;
}

// inproc as a transport that reaches memory of devices; the model's is the host's.
std::atomic<std::uint64_t> sent_from_device{0}, received_on_device{0};
struct inproc_on_device : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "inproc_on_device";
    static constexpr transport_facts facts{.keeps_order = true,
                                           .device_memory = true,
                                           .abandons = true,
                                           .tuning = {.chunk_bytes = 4 << 10,
                                                      .window_bytes = 16 << 10,
                                                      .one_hop_bytes = 1 << 10}}; // two hops also for parts
    void register_device_memory(std::span<std::byte> memory, int) noexcept { there = memory; }
    bool post_send(herring::peer_id peer, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        sent_from_device += lies_there(from.data());
        return inproc::post_send(peer, tag, from, token);
    }
    bool post_receive(herring::peer_id peer, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        received_on_device += lies_there(into.data());
        return inproc::post_receive(peer, tag, into, token);
    }
    bool lies_there(std::byte const* place) const noexcept {
        return static_cast<std::size_t>(place - there.data()) < there.size();
    }
    std::span<std::byte> there;
};

// What a run's reducers say of it, in all.
struct said {
    std::atomic<std::uint64_t> not_finite{0}, replays{0};
    std::atomic<int> norms{0}; // ranks whose squared norm is the one of their results
};

// The same on the model of a device: the host never waits for it between steps. `move`: the caller's tensors, now and then.
template <class Node, class T, class Update, class Transport = transport::inproc, class... More>
std::vector<T> on_device(names const& nodes, std::uint64_t seed, said* seen = nullptr, bool move = false) {
    std::vector<T> out(place<T>(static_cast<int>(nodes.size()), 0));
    launch_options options;
    options.nodes = nodes;
    launch_threads(
        static_cast<int>(nodes.size()),
        [&](world& ranks) {
            kernels<T> mine;
            using reducing = reducer<T, Update, Transport, Node, fusion_of_little, More...>;
            reducing reduce(ranks, layout::of(sizes));
            gpu::host_runtime device(ranks);
            // The tensors 3, 6 and 8 are the caller's, at odd places.
            gpu::host_runtime::memory elsewhere(device, (sizes[3] + sizes[6] + sizes[8] + 4) * sizeof(T));
            T* first = reinterpret_cast<T*>(elsewhere.data()) + 1;
            auto const mine_or_its = [&](std::size_t t) -> device_span<T> {
                if (t == 3) return {first, sizes[3]};
                if (t == 6) return {first + sizes[3], sizes[6]};
                if (t == 8) return {first + sizes[3] + sizes[6] + 1, sizes[8]};
                return reduce.tensor(t);
            };
            gpu::host_runtime::stream one(device), two(device);
            gpu::host_runtime::event joined(device, false);
            dice roll(seed * 64 + static_cast<std::uint64_t>(ranks.rank()));
            std::vector<std::size_t> order;
            for (std::size_t t = 0; t < sizes.size(); ++t) order.push_back(t);
            for (int step = 0; step < steps; ++step) {
                roll.shuffle(order);
                if (move && step == steps / 2) ++first;
                // The second stream follows the first: what it writes was read there.
                device.record(joined, one.handle());
                device.wait(two.handle(), joined);
                for (std::size_t const t : order) {
                    device_span<T> const at = mine_or_its(t);
                    auto const stream = roll(3) == 0 ? two.handle() : one.handle();
                    mine.fills.push_back({at.data(), at.size(), t, ranks.rank(), step});
                    gpu::host_runtime::launch(stream, kernels<T>::fill::run, &mine.fills.back());
                    t == 3 || t == 6 || t == 8 ? reduce.ready(t, at, stream) : reduce.ready(t, stream);
                    if (roll(4) == 0) reduce.poll();
                }
                reduce.wait(one.handle());
                T* to = out.data() + place<T>(ranks.rank(), step);
                for (std::size_t t = 0; t < sizes.size(); ++t) {
                    device_span<T> const at = mine_or_its(t);
                    mine.keeps.push_back({at.data(), at.size(), to});
                    gpu::host_runtime::launch(one.handle(), kernels<T>::keep::run, &mine.keeps.back());
                    to += at.size();
                }
            }
            if (seen != nullptr) {
                gpu::host_machine::current()->drain(*one.handle());
                seen->not_finite += reduce.intra_node().not_finite();
                seen->replays += reduce.intra_node().replays();
                auto const wide = [](T v) { return static_cast<double>(static_cast<accumulator<T>>(v)); };
                double squares = 0;
                T const* const last = out.data() + place<T>(ranks.rank(), steps - 1);
                for (T const* v = last; v != out.data() + place<T>(ranks.rank(), steps); ++v)
                    squares += wide(*v) * wide(*v);
                double const found = reduce.intra_node().squared_norm();
                seen->norms += found == squares || (found != found && squares != squares) ||
                               (found > squares * (1 - 1e-12) && found < squares * (1 + 1e-12));
            }
            // A stream ends with what is in it; the reducer goes after it, as its memory must.
            return 0;
        },
        options);
    return out;
}

// Everything in one thread: what each rank does next, and what its device does, is drawn. A seed gives one order, always.
template <class Node, class T, class Update> std::vector<T> by_turns(names const& nodes, std::uint64_t seed) {
    using reducing = reducer<T, Update, transport::inproc, Node, fusion_of_little>;
    struct rank_state {
        explicit rank_state(world& made) : ranks(made), device(made), stream(device) {}
        world& ranks;
        kernels<T> work;
        std::optional<reducing> reduce;
        gpu::host_runtime device;
        gpu::host_runtime::stream stream;
        std::size_t ready = 0;
        int step = 0;
        std::uint64_t submitted = 0; // operations, with those of this step
    };
    std::vector<T> out(place<T>(static_cast<int>(nodes.size()), 0));
    launch_options options;
    options.nodes = nodes;
    std::vector<world> worlds = thread_worlds(static_cast<int>(nodes.size()), options);
    std::deque<rank_state> all;
    for (world& w : worlds) all.emplace_back(w);
    auto const each_in_a_thread = [&](auto const& function) {
        std::vector<std::thread> threads;
        for (rank_state& one : all) threads.emplace_back([&] { function(one); });
        for (std::thread& t : threads) t.join();
    };
    each_in_a_thread([](rank_state& one) { one.reduce.emplace(one.ranks, layout::of(sizes)); });

    dice roll(seed);
    std::uint64_t a_step = 0;
    for (bucket const& b : all[0].reduce->plan().buckets) a_step += b.elements > 0;
    std::size_t left = all.size();
    for (std::uint64_t turns = 0; left > 0 && turns < 3'000'000; ++turns) {
        if (roll(3) == 0) {
            gpu::host_machine::current()->turn();
            continue;
        }
        rank_state& one = all[roll(all.size())];
        if (one.step == steps) {
            one.reduce->poll(); // others may need it still
        } else if (one.ready < sizes.size() && roll(2) == 0) {
            std::size_t const t = one.ready++;
            device_span<T> const at = one.reduce->tensor(t);
            one.work.fills.push_back({at.data(), at.size(), t, one.ranks.rank(), one.step});
            gpu::host_runtime::launch(one.stream.handle(), kernels<T>::fill::run, &one.work.fills.back());
            one.reduce->ready(t, one.stream.handle());
        } else if (one.ready == sizes.size() && one.reduce->counters().operations == one.submitted + a_step) {
            one.reduce->wait(one.stream.handle());
            T* to = out.data() + place<T>(one.ranks.rank(), one.step);
            for (std::size_t t = 0; t < sizes.size(); to += sizes[t], ++t) {
                one.work.keeps.push_back({one.reduce->tensor(t).data(), sizes[t], to});
                gpu::host_runtime::launch(one.stream.handle(), kernels<T>::keep::run, &one.work.keeps.back());
            }
            one.submitted += a_step;
            one.ready = 0;
            if (++one.step == steps) --left;
        } else {
            one.reduce->poll();
        }
    }
    if (left > 0) out.clear();
    for (rank_state& one : all) gpu::host_machine::current()->drain(*one.stream.handle());
    each_in_a_thread([](rank_state& one) { one.reduce.reset(); });
    return out;
}

template <class T> std::size_t differing(std::vector<T> const& a, std::vector<T> const& b) {
    std::size_t count = 0;
    if (a.size() != b.size()) return a.size() + b.size();
    for (std::size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
    return count;
}

template <class T, class Update, class Node, class... More>
void same_bits(names const& nodes, std::uint64_t seeds) {
    static_assert(Node::facts.rank_order); // of others: tests/unit/gpu/pipeline/nccl_test.cpp
    std::vector<T> const want = on_host<T, Update>(nodes);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        CAPTURE(seed);
        CAPTURE(nodes.size());
        gpu::host_machine machine({.seed = seed, .workers = 1 + static_cast<int>(seed % 2)});
        CHECK(differing(want, on_device<Node, T, Update, More...>(nodes, seed)) == 0);
        CHECK(machine.device_used == 0);
        CHECK(machine.pinned_used == 0);
    }
}

template <class Node> void every_world_and_type() {
    for (names const& nodes : {names{"a"}, names{"a", "a"}, names{"a", "a", "a"}, names{"a", "b"},
                               names{"a", "a", "b", "b"}, names{"a", "b", "a", "a", "b"}})
        same_bits<float, update::average, Node>(nodes, static_cast<std::uint64_t>(times(6)));
    same_bits<bfloat16, update::average, Node>({"a", "a", "a"}, 1);
    same_bits<bfloat16, update::average, Node>({"a", "a", "b", "b"}, 2);
    same_bits<bfloat16, update::sum, Node>({"a", "b", "b"}, 1);
    same_bits<float16, update::average, Node>({"a", "a", "b", "b"}, 1);
    same_bits<double, update::max, Node>({"a", "a", "b"}, 1);
    same_bits<std::int32_t, update::sum, Node>({"a", "a", "b"}, 1);
    same_bits<float, update::average, Node, transport::inproc, progress::thread>({"a", "a", "b", "b"}, 2);
}

} // namespace

TEST_CASE("gpu: pcie_staging on the model of a device, the same bits as shared_memory") {
    every_world_and_type<staging>();
}

TEST_CASE("gpu: pcie_staging whose threads sum, the same bits as shared_memory") {
    std::vector<std::size_t> const before = sizes;
    for (std::size_t& elements : sizes) elements *= 8;
    for (names const& nodes : {names{"a"}, names{"a", "a"}, names{"a", "a", "a"}, names{"a", "a", "b", "b"}})
        same_bits<float, update::average, staging_in_threads>(nodes, 2);
    same_bits<bfloat16, update::average, staging_in_threads>({"a", "a"}, 1);
    same_bits<float16, update::average, staging_in_threads>({"a", "a", "a"}, 1);
    same_bits<double, update::max, staging_in_threads>({"a", "a"}, 1);
    same_bits<std::int32_t, update::sum, staging_in_threads>({"a", "a", "a"}, 1);
    same_bits<float, update::average, staging_in_threads, transport::inproc, progress::thread>({"a", "a"}, 2);
    sizes = before;
}

TEST_CASE("gpu: nvlink on the model of a device, the same bits as shared_memory") {
    every_world_and_type<peer_sums>();
}

TEST_CASE("gpu: every order of a device's work, drawn") {
    for (names const& nodes : {names{"a", "a", "a"}, names{"a", "a", "b"}, names{"a", "a", "b", "b"}}) {
        auto const want = on_host<bfloat16, update::average>(nodes);
        for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(24)); ++seed) {
            CAPTURE(seed);
            CAPTURE(nodes.size());
            gpu::host_machine machine({.seed = seed, .workers = 0});
            CHECK(differing(want, by_turns<staging, bfloat16, update::average>(nodes, seed)) == 0);
            CHECK(differing(want, by_turns<peer_sums, bfloat16, update::average>(nodes, seed)) == 0);
            CHECK(machine.device_used == 0);
        }
    }
}

// A runtime whose streams wait for nothing, and one that takes everything for done: the tests above must see it.
struct forgetful : gpu::host_runtime {
    using host_runtime::host_runtime;
    void wait(stream_handle, event&) noexcept {}
};
struct hasty : gpu::host_runtime {
    using host_runtime::host_runtime;
    bool done(event&) noexcept { return true; }
};

TEST_CASE("gpu: what is out of order gives other bits") {
    names const nodes{"a", "a", "b", "b"};
    auto const want = on_host<float, update::average>(nodes);
    auto const caught = [&](auto const& run) {
        std::size_t found = 0;
        for (std::uint64_t seed = 1; seed <= 10 && found == 0; ++seed) {
            gpu::host_machine machine({.seed = seed, .workers = 0});
            found = differing(want, run(seed));
        }
        return found > 0;
    };
    using staging_that_forgets =
        gpu::basic_pcie_staging<forgetful, gpu::staging_tuning{.slot_count = 2, .piece_bytes = 64_KiB}>;
    using hasty_staging =
        gpu::basic_pcie_staging<hasty, gpu::staging_tuning{.slot_count = 2, .piece_bytes = 64_KiB}>;
    using sums_that_forget =
        gpu::basic_nvlink<forgetful, gpu::peer_sums_tuning{.slot_count = 2, .piece_bytes = 64_KiB}>;
    using hasty_sums =
        gpu::basic_nvlink<hasty, gpu::peer_sums_tuning{.slot_count = 2, .piece_bytes = 64_KiB}>;
    CHECK(caught(
        [&](auto seed) { return by_turns<staging_that_forgets, float, update::average>(nodes, seed); }));
    CHECK(caught([&](auto seed) { return by_turns<hasty_staging, float, update::average>(nodes, seed); }));
    CHECK(caught([&](auto seed) { return by_turns<sums_that_forget, float, update::average>(nodes, seed); }));
    CHECK(caught([&](auto seed) { return by_turns<hasty_sums, float, update::average>(nodes, seed); }));
}

// One large tensor on `nodes`: how much of it gets through the host (or the network), in thousandths, while the devices stand still
// from when the first of it has on every rank. `staged(reducer)`: what tells that.
template <class Node, class Staged>
std::size_t through_before_the_rest(names const& nodes, Staged const& staged) {
    constexpr std::size_t elements = 40'000;
    gpu::host_machine machine({.workers = 0});
    launch_options options;
    options.nodes = nodes;
    std::vector<world> worlds = thread_worlds(static_cast<int>(nodes.size()), options);
    using reducing = reducer<float, update::sum, transport::inproc, Node>;
    struct rank_state {
        std::optional<reducing> reduce;
        std::optional<gpu::host_runtime> device;
        std::optional<gpu::host_runtime::stream> stream;
    };
    std::vector<rank_state> all(worlds.size());
    auto const each_in_a_thread = [&](auto const& function) {
        std::vector<std::thread> threads;
        for (std::size_t r = 0; r < all.size(); ++r)
            threads.emplace_back([&, r] { function(all[r], worlds[r]); });
        for (std::thread& t : threads) t.join();
    };
    each_in_a_thread([](rank_state& one, world& ranks) {
        one.reduce.emplace(ranks, layout{{"large", elements}});
        one.device.emplace(ranks);
        one.stream.emplace(*one.device);
    });
    for (rank_state& one : all) one.reduce->ready(0, one.stream->handle());
    auto const poll = [&](int times) {
        for (int i = 0; i < times; ++i)
            for (rank_state& one : all) one.reduce->poll();
    };
    auto const sum = [&] {
        std::uint64_t made = 0;
        for (rank_state& one : all) made += staged(*one.reduce);
        return made;
    };
    bool begun = false;
    for (int turn = 0; !begun && turn < 100'000; ++turn) {
        machine.turn();
        poll(200);
        begun = true;
        for (rank_state& one : all) begun = begun && staged(*one.reduce) > 0;
    }
    poll(1000); // the devices stand still: what can go on without them does
    std::uint64_t const early = sum();
    std::uint64_t const due = all[0].reduce->plan().buckets.size();
    for (int turn = 0; all[0].reduce->counters().operations < due && turn < 1'000'000; ++turn) {
        machine.turn();
        poll(1);
    }
    poll(1000);
    CHECK(all[0].reduce->counters().operations == due);
    std::uint64_t const late = sum();
    for (rank_state& one : all) {
        one.reduce->wait(one.stream->handle());
        machine.drain(*one.stream->handle());
    }
    each_in_a_thread([](rank_state& one, world&) {
        one.stream.reset();
        one.reduce.reset();
    });
    return late == 0 ? 0 : static_cast<std::size_t>(early * 1000 / late);
}

TEST_CASE("gpu: one large tensor: the devices, the host and the network are at work on it at the same time") {
    using cut_staging =
        gpu::basic_pcie_staging<gpu::host_runtime,
                                gpu::staging_tuning{.split_bytes = 20_KiB, .piece_bytes = 64_KiB}>;
    using cut_sums = gpu::basic_nvlink<gpu::host_runtime,
                                       gpu::peer_sums_tuning{.split_bytes = 20_KiB, .piece_bytes = 64_KiB}>;
    using whole_staging =
        gpu::basic_pcie_staging<gpu::host_runtime,
                                gpu::staging_tuning{.split_bytes = 0, .piece_bytes = 64_KiB}>;
    using whole_sums =
        gpu::basic_nvlink<gpu::host_runtime, gpu::peer_sums_tuning{.split_bytes = 0, .piece_bytes = 64_KiB}>;
    auto const received = [](auto& reduce) { return reduce.counters().bytes_received; };
    auto const released = [](auto& reduce) { return reduce.counters().operations; };
    // Sums of the first parts have been exchanged while there are parts that no device has summed. The number
    // of parts depends on how often other threads get a core.
    for (names const& nodes : {names{"a", "b"}, names{"a", "a", "b", "b"}}) {
        CAPTURE(nodes.size());
        std::size_t const some = through_before_the_rest<cut_sums>(nodes, received);
        CHECK(some > 0);
        CHECK(some < 1000);
        CHECK(through_before_the_rest<cut_staging>(nodes, received) < 1000);
        CHECK(through_before_the_rest<whole_sums>(nodes, received) == 1000);
        CHECK(through_before_the_rest<whole_staging>(nodes, received) == 1000);
    }
    // On one node: the host has summed the first while the others are not there yet.
    CHECK(through_before_the_rest<cut_staging>({"a", "a"}, released) < 1000);
    CHECK(through_before_the_rest<whole_staging>({"a", "a"}, released) == 1000);
}

TEST_CASE("gpu: results are inspected where that is asked for: what is no number, and the squared norm") {
    using inspecting_staging =
        gpu::basic_pcie_staging<gpu::host_runtime,
                                gpu::staging_tuning{.piece_bytes = 64_KiB, .inspect = true}>;
    using inspecting_sums =
        gpu::basic_nvlink<gpu::host_runtime, gpu::peer_sums_tuning{.piece_bytes = 64_KiB, .inspect = true}>;
    names const nodes{"a", "a", "b"};
    auto const inspected = [&]<class Node, class T>(Node*, T) {
        std::uint64_t want = 0;
        for (T const v : on_host<T, update::sum>(nodes))
            if constexpr (std::is_floating_point_v<T>) want += gpu::detail::not_finite(v);
        gpu::host_machine machine;
        said seen;
        (void)on_device<Node, T, update::sum>(nodes, 1, &seen);
        CHECK(seen.norms == 3);
        CHECK(seen.not_finite == want);
        return want;
    };
    CHECK(inspected(static_cast<inspecting_staging*>(nullptr), 0.0f) > 0); // of which the norm is none
    inspected(static_cast<inspecting_sums*>(nullptr), 0.0f);
    CHECK(inspected(static_cast<inspecting_staging*>(nullptr), std::int32_t{}) == 0);
    inspected(static_cast<inspecting_sums*>(nullptr), std::int32_t{});
    gpu::host_machine machine;
    said seen;
    (void)on_device<staging, float, update::sum>(nodes, 1, &seen);
    CHECK(seen.not_finite == 0); // not asked for
    CHECK(seen.norms == 0);
}

template <class Node> void by_graphs() {
    for (names const& nodes : {names{"a"}, names{"a", "a"}, names{"a", "a", "b"}}) {
        CAPTURE(nodes.size());
        auto const want = on_host<bfloat16, update::average>(nodes);
        for (bool const move : {false, true})
            for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(4)); ++seed) {
                CAPTURE(seed);
                gpu::host_machine machine({.seed = seed, .workers = 1 + static_cast<int>(seed % 2)});
                said seen;
                CHECK(differing(want, on_device<Node, bfloat16, update::average>(nodes, seed, &seen, move)) ==
                      0);
                // Other values in each step, and the same graphs from the second on.
                CHECK(seen.replays > nodes.size());
                CHECK(machine.device_used == 0);
            }
        for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(6)); ++seed) {
            CAPTURE(seed);
            gpu::host_machine machine({.seed = seed, .workers = 0});
            CHECK(differing(want, by_turns<Node, bfloat16, update::average>(nodes, seed)) == 0);
        }
    }
}

TEST_CASE("gpu: pcie_staging by graphs: what is replayed does what was enqueued") {
    by_graphs<staging_by_graphs>();
}
TEST_CASE("gpu: nvlink by graphs: what is replayed does what was enqueued") { by_graphs<sums_by_graphs>(); }

TEST_CASE("gpu: a transport that reaches devices: what others serve does not pass the host, the same bits") {
    for (names const& nodes : {names{"a", "b"}, names{"a", "a", "b", "b"}, names{"a", "b", "a", "c"}}) {
        CAPTURE(nodes.size());
        sent_from_device = received_on_device = 0;
        auto const all = [&]<class Node, class T>(Node*, T) {
            auto const want = on_host<T, update::average>(nodes);
            for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(3)); ++seed) {
                CAPTURE(seed);
                gpu::host_machine machine({.seed = seed, .workers = 1 + static_cast<int>(seed % 2)});
                CHECK(differing(want, on_device<Node, T, update::average, inproc_on_device>(nodes, seed)) ==
                      0);
                CHECK(machine.device_used == 0);
            }
        };
        all(static_cast<peer_sums*>(nullptr), 0.0f);
        all(static_cast<peer_sums*>(nullptr), bfloat16{});
        CHECK(sent_from_device > 0);
        CHECK(received_on_device == sent_from_device); // one result a push
        all(static_cast<sums_by_graphs*>(nullptr), bfloat16{});
        std::uint64_t const before = sent_from_device;
        all(static_cast<staging*>(nullptr), bfloat16{}); // whose sums are the host's
        CHECK(sent_from_device == before);
    }
}

// Calls by the rules of a list in turn.
template <class Reducer, class... Arguments>
void rule_of_turn(Reducer& reduce, int turn, Arguments... arguments) {
    using update = typename Reducer::pack::update;
    if constexpr (herring::detail::lists_rules<update>)
        update::choose(
            static_cast<std::uint8_t>(1 + turn % static_cast<int>(update::names().size())),
            [&]<class Rule>(std::type_identity<Rule>) { reduce.all_reduce(arguments..., Rule()); });
    else
        reduce.all_reduce(arguments...);
}

// Buffers outside the layout, of sizes about those of a piece (64 KiB here) and the ring (4 of them).
template <class Node, class T, class Update = update::average>
void all_reduces(names const& nodes, std::uint64_t seed) {
    gpu::host_machine machine({.seed = seed, .workers = 1 + static_cast<int>(seed % 2)});
    launch_options options;
    options.nodes = nodes;
    std::atomic<int> wrong{0};
    launch_threads(
        static_cast<int>(nodes.size()),
        [&](world& ranks) {
            reducer<T, Update, transport::inproc, Node> reduce(ranks, {{"a", 100}, {"b", 1000}});
            reducer<T, Update, transport::inproc, intra_node::shared_memory> model(ranks);
            std::size_t const piece = 65536 / sizeof(T);
            gpu::host_runtime device(ranks);
            gpu::host_runtime::memory memory(device, 6 * 65536);
            T* const buffer = reinterpret_cast<T*>(memory.data()) + 3;
            std::vector<T> want(6 * piece), got(6 * piece);
            kernels<T> mine;
            gpu::host_runtime::stream stream(device);
            int step = 0;
            for (std::size_t const count : {std::size_t{0}, std::size_t{1}, std::size_t{700}, piece - 1,
                                            piece, piece + 1, 4 * piece, 5 * piece + 17}) {
                mine.fills.push_back({buffer, count, 0, ranks.rank(), ++step});
                gpu::host_runtime::launch(stream.handle(), kernels<T>::fill::run, &mine.fills.back());
                rule_of_turn(reduce, step, device_span<T>(buffer, count), stream.handle());
                mine.keeps.push_back({buffer, count, got.data()});
                gpu::host_runtime::launch(stream.handle(), kernels<T>::keep::run, &mine.keeps.back());
                for (std::size_t i = 0; i < count; ++i) want[i] = value<T>(ranks.rank(), 0, i, step);
                rule_of_turn(model, step, std::span<T>(want.data(), count));
                machine.drain(*stream.handle());
                wrong += count > 0 && std::memcmp(want.data(), got.data(), count * sizeof(T)) != 0;
                // Steps go on as before.
                for (std::size_t t = 0; t < 2; ++t) {
                    mine.fills.push_back({reduce.tensor(t).data(), reduce.tensor(t).size(), t, 0, step});
                    gpu::host_runtime::launch(stream.handle(), kernels<T>::fill::run, &mine.fills.back());
                    reduce.ready(t, stream.handle());
                }
                reduce.wait(stream.handle());
            }
            machine.drain(*stream.handle());
            return 0;
        },
        options);
    CHECK(wrong == 0);
    CHECK(machine.device_used == 0);
}

TEST_CASE("gpu: all_reduce of device memory, the same bits as the host's") {
    std::uint64_t seed = 1;
    for (names const& nodes : {names{"a"}, names{"a", "a", "a"}, names{"a", "a", "b"}, names{"a", "b"}}) {
        CAPTURE(nodes.size());
        all_reduces<staging, float>(nodes, ++seed);
        all_reduces<peer_sums, other_library::brain_float>(nodes, ++seed);
        all_reduces<sums_by_graphs, float>(nodes, ++seed);
    }
}
TEST_CASE("gpu: all_reduce of device memory by several rules, the same bits as the host's") {
    using rules = update::any<update::sum, update::average, update::max>;
    std::uint64_t seed = 20;
    for (names const& nodes : {names{"a", "a", "a"}, names{"a", "a", "b"}}) {
        CAPTURE(nodes.size());
        all_reduces<staging, float, rules>(nodes, ++seed);
        all_reduces<staging_in_threads, std::int32_t, update::any<update::min, update::max>>(nodes, ++seed);
        all_reduces<peer_sums, bfloat16, rules>(nodes, ++seed);
        all_reduces<sums_by_graphs, float, rules>(nodes, ++seed);
    }
}

// A push of the third piece is not told before one of the sixth is there: which a ring of four has under way when two are out, and
// rounds of four never have.
struct late_third : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "late_third";
    template <class Handler> std::size_t poll(Handler&& handler) noexcept {
        return inproc::poll([&](completion const& done) noexcept {
            bool const push = done.what == completion::received && done.tag >> 60 == 1;
            std::uint64_t const number = done.tag & 0xfffffff;
            if (push && number == 2)
                kept = done;
            else
                handler(done);
            if (push && number == 5 && kept) handler(*std::exchange(kept, std::nullopt));
        });
    }
    std::optional<completion> kept;
};

TEST_CASE("gpu: all_reduce of device memory: a ring, not rounds") {
    auto const ended = []<class Node>(Node*) {
        gpu::host_machine machine({.workers = 2});
        std::atomic<int> good{0};
        launch_options options;
        options.nodes = {"a", "b"};
        launch_threads(
            2,
            [&](world& ranks) {
                constexpr std::size_t count = 8 * 16384; // of 64 KiB each
                reducer<float, update::average, late_third, Node> reduce(ranks, {{"a", 100}});
                gpu::host_runtime device(ranks);
                gpu::host_runtime::memory memory(device, count * sizeof(float));
                gpu::host_runtime::stream stream(device);
                device_span<float> const all(reinterpret_cast<float*>(memory.data()), count);
                good += reduce.all_reduce(all, stream.handle(), clock::now() + std::chrono::seconds(5)).ok();
                machine.drain(*stream.handle());
                return 0;
            },
            options);
        return good == 2;
    };
    using four_slots = gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.piece_bytes = 64_KiB}>;
    using sums_in_four = gpu::basic_nvlink<gpu::host_runtime, gpu::peer_sums_tuning{.piece_bytes = 64_KiB}>;
    CHECK(ended(static_cast<four_slots*>(nullptr)));
    CHECK(ended(static_cast<sums_in_four*>(nullptr)));
}

// One call after another, each in a stream of its own that nothing orders behind the other's: the caller's tensors share the
// reducer's, the ring, and the lists of what is copied.
template <class Node> std::string in_other_streams(int n, std::uint64_t seed) {
    constexpr std::size_t counts[] = {4000, 300};
    constexpr int rounds = 3;
    gpu::host_machine machine({.seed = seed});
    std::atomic<int> wrong_buffers{0}, wrong_steps{0};
    launch_options options;
    options.nodes = names(static_cast<std::size_t>(n), "a");
    launch_threads(
        n,
        [&](world& ranks) {
            reducer<float, update::sum, transport::inproc, Node> reduce(ranks,
                                                                        {{"a", counts[0]}, {"b", counts[1]}});
            gpu::host_runtime device(ranks);
            gpu::host_runtime::memory memory(device, 2 * rounds * 4300 * sizeof(float));
            kernels<float> mine;
            std::deque<gpu::host_runtime::stream> streams;
            for (int i = 0; i < 2; ++i) streams.emplace_back(device);
            std::vector<float> want(4300);
            auto const at = [&](int call) {
                return reinterpret_cast<float*>(memory.data()) + static_cast<std::size_t>(call) * 4300;
            };
            auto const stream = [&](int call) {
                return streams[static_cast<std::size_t>(call) % 2].handle();
            };
            auto const fill = [&](int call) {
                mine.fills.push_back({at(call), 4300, 0, ranks.rank(), call});
                gpu::host_runtime::launch(stream(call), kernels<float>::fill::run, &mine.fills.back());
            };
            auto const differs = [&](int call, std::size_t count) {
                machine.drain(*stream(call));
                for (std::size_t i = 0; i < count; ++i) {
                    want[i] = value<float>(0, 0, i, call);
                    for (int r = 1; r < n; ++r) want[i] += value<float>(r, 0, i, call);
                    bool const none = want[i] != want[i];
                    if (none ? at(call)[i] == at(call)[i] : at(call)[i] != want[i]) return 1;
                }
                return 0;
            };
            for (int call = 0; call < rounds; ++call) fill(call);
            for (int call = 0; call < rounds; ++call) reduce.all_reduce({at(call), 4000}, stream(call));
            for (int call = 0; call < rounds; ++call) wrong_buffers += differs(call, 4000);
            for (int call = rounds; call < 2 * rounds; ++call) fill(call);
            for (int call = rounds; call < 2 * rounds; ++call) {
                reduce.ready(0, device_span<float>(at(call), counts[0]), stream(call));
                reduce.ready(1, device_span<float>(at(call) + counts[0], counts[1]), stream(call));
                reduce.wait(stream(call));
            }
            for (int call = rounds; call < 2 * rounds; ++call) wrong_steps += differs(call, 4300);
            ranks.barrier();
            return 0;
        },
        options);
    return (wrong_buffers > 0 ? "all_reduce " : "") + std::string(wrong_steps > 0 ? "steps" : "");
}

TEST_CASE("gpu: calls in other streams than those before: none overwrites what another has not taken yet") {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(12)); ++seed)
        for (int const n : {1, 2}) {
            CAPTURE(seed);
            CAPTURE(n);
            CHECK(in_other_streams<staging>(n, seed) == "");
            CHECK(in_other_streams<peer_sums>(n, seed) == "");
            CHECK(in_other_streams<staging_by_graphs>(n, seed) == "");
            CHECK(in_other_streams<sums_by_graphs>(n, seed) == "");
        }
}

// A stream of the caller's that stands still until `ready` has returned for every tensor, each time with other memory: a host
// that waited for anything in it would wait for itself.
template <class Node> std::string ready_in_a_stream_that_stands() {
    constexpr std::size_t tensors = 8, elements = 600; // three a bucket or so
    constexpr int rounds = 4;
    gpu::host_machine machine({.workers = 2});
    struct gate {
        std::atomic<bool> open{false}, forced{false};
        static void run(void* self) {
            auto& me = *static_cast<gate*>(self);
            time_point const late = clock::now() + std::chrono::seconds(20);
            while (!me.open && clock::now() < late) std::this_thread::yield();
            if (!me.open) me.forced = true;
        }
    } gates[rounds];
    int wrong = 0;
    launch_threads(1, [&](world& alone) {
        reducer<float, update::sum, transport::inproc, Node, fusion_of_little> reduce(
            alone, layout::of(std::vector<std::size_t>(tensors, elements)));
        gpu::host_runtime device(alone);
        gpu::host_runtime::memory memory(device, rounds * tensors * elements * sizeof(float));
        kernels<float> mine;
        gpu::host_runtime::stream stream(device);
        auto const at = [&](int round, std::size_t t) {
            return reinterpret_cast<float*>(memory.data()) +
                   (static_cast<std::size_t>(round) * tensors + t) * elements;
        };
        for (int round = 0; round < rounds; ++round) {
            gpu::host_runtime::launch(stream.handle(), gate::run, &gates[round]);
            for (std::size_t i = 0; i < tensors; ++i) {
                std::size_t const t = round % 2 == 0 ? i : tensors - 1 - i;
                mine.fills.push_back({at(round, t), elements, t, 0, round});
                gpu::host_runtime::launch(stream.handle(), kernels<float>::fill::run, &mine.fills.back());
                reduce.ready(t, device_span<float>(at(round, t), elements), stream.handle());
            }
            gates[round].open = true;
            reduce.wait(stream.handle());
        }
        machine.drain(*stream.handle());
        for (int round = 0; round < rounds; ++round)
            for (std::size_t t = 0; t < tensors; ++t)
                for (std::size_t i = 0; i < elements; ++i) {
                    float const want = value<float>(0, t, i, round), got = at(round, t)[i];
                    wrong += want == want ? got != want : got == got;
                }
        return 0;
    });
    for (gate const& g : gates)
        if (g.forced) return "it waited";
    return wrong > 0 ? "a wrong sum" : "";
}

TEST_CASE("gpu: ready does not wait for the caller's stream, whatever memory it is given") {
    CHECK(ready_in_a_stream_that_stands<staging>() == "");
    CHECK(ready_in_a_stream_that_stands<peer_sums>() == "");
    CHECK(ready_in_a_stream_that_stands<staging_by_graphs>() == "");
    CHECK(ready_in_a_stream_that_stands<sums_by_graphs>() == "");
}

TEST_CASE("gpu: both pass the suite of their axis") {
    gpu::host_machine machine;
    CHECK(text(intra_node_suite<staging>()) == "");
    CHECK(text(intra_node_suite<peer_sums>()) == "");
}
