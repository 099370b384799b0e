// herring: tests of gpu/pipeline/summing_threads.hpp: what they sum, when they say so, and how they end.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/summing_threads.hpp"

#include "herring/launch.hpp"
#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace herring;

static_assert(gpu::summing_threads::by_cores(1, 16, 16) == 4 &&
              gpu::summing_threads::by_cores(2, 16, 16) == 2 &&
              gpu::summing_threads::by_cores(4, 16, 16) == 1 &&
              gpu::summing_threads::by_cores(8, 64, 64) == 0);
static_assert(gpu::summing_threads::by_cores(2, 2, 2) == 0 && gpu::summing_threads::by_cores(2, 4, 4) == 1 &&
              gpu::summing_threads::by_cores(2, 16, 1) == 0 && gpu::summing_threads::by_cores(4, 2, 2) == 0);

namespace {

constexpr std::size_t elements = 4999, chunk_elements = 300, buckets = 6;

shard const all_of_it{.elements = elements,
                      .chunk_elements = chunk_elements,
                      .chunks = static_cast<std::uint32_t>((elements + chunk_elements - 1) / chunk_elements)};
execution bucket_at(std::byte* own) {
    execution x;
    x.shards = &all_of_it;
    x.shard_count = 1;
    x.own = own;
    x.elements = elements;
    return x;
}

template <class T> T value(int rank, std::size_t bucket, std::size_t i) {
    return static_cast<T>(
        static_cast<float>((i * 2654435761u + bucket * 97 + static_cast<std::size_t>(rank)) % 1999) * 0.37f);
}

// Each rank hands its buckets over at once; how many elements of all its results are wrong.
template <class Update, class T> std::vector<std::size_t> wrong(int ranks, std::size_t threads) {
    std::vector<std::size_t> found(static_cast<std::size_t>(ranks), ~std::size_t{0});
    launch_threads(ranks, [&](world& w) {
        std::size_t const stride = 64 + elements * sizeof(T);
        intra_node::shared_memory node(w, buckets * stride);
        auto const at = [&](std::size_t b) { return node.memory() + b * stride; };
        for (std::size_t b = 0; b < buckets; ++b)
            for (std::size_t i = 0; i < elements; ++i)
                reinterpret_cast<T*>(at(b))[i] = value<T>(w.rank(), b, i);
        gpu::summing_threads team(w, node, threads, buckets);
        team.start<Update, T>();
        w.barrier();
        std::size_t taken = 0;
        for (std::size_t b = 0; b < buckets; ++b) {
            execution const x = bucket_at(at(b));
            team.hand_over(x);
            taken += team.take(x);
        }
        for (std::size_t b = 0; b < buckets; ++b)
            while (!team.next_is_summed()) std::this_thread::yield();
        w.barrier();
        std::vector<T> mine(elements), want(elements);
        std::size_t count = 0;
        for (std::size_t b = 0; b < buckets; ++b) {
            std::vector<std::vector<T>> parts(static_cast<std::size_t>(ranks), std::vector<T>(elements));
            std::vector<kernel::source> from;
            for (int r = 0; r < ranks; ++r) {
                auto& part = parts[static_cast<std::size_t>(r)];
                for (std::size_t i = 0; i < elements; ++i) part[i] = value<T>(r, b, i);
                from.push_back({part.data()});
            }
            T* const target = want.data();
            kernel::fold<Update, T>(from, std::span<T* const>(&target, 1), elements, ranks);
            std::memcpy(static_cast<void*>(mine.data()), at(b), elements * sizeof(T));
            for (std::size_t i = 0; i < elements; ++i)
                count += std::memcmp(&mine[i], &want[i], sizeof(T)) != 0;
        }
        bool const few = all_of_it.chunks < 2 * threads * static_cast<std::size_t>(ranks);
        found[static_cast<std::size_t>(w.rank())] = count + (taken == (few ? 0 : buckets) ? 0 : 1);
        return 0;
    });
    return found;
}

// Sums, but no element while the gate is closed.
struct gated : update::sum {
    static constexpr update_facts facts{};
    static inline std::atomic<bool> open{false};
    static inline std::atomic<int> waiting{0};
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept {
        if (!open.load()) {
            waiting.fetch_add(1);
            while (!open.load()) std::this_thread::yield();
        }
        return a + b;
    }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};

} // namespace

TEST_CASE("summing threads: the bits of one thread, whatever the type, the rule and how many there are") {
    for (std::size_t const threads : {1u, 2u, 3u, 40u}) { // 40: more than chunks
        CAPTURE(threads);
        using none = std::vector<std::size_t>;
        CHECK(wrong<update::average, float>(2, threads) == none{0, 0});
        CHECK(wrong<update::average, bfloat16>(3, threads) == none{0, 0, 0});
        CHECK(wrong<update::sum, float16>(1, threads) == none{0});
        CHECK(wrong<update::max, double>(2, threads) == none{0, 0});
        CHECK(wrong<update::sum, std::int32_t>(2, threads) == none{0, 0});
    }
}

TEST_CASE("summing threads: a bucket is not summed before each of its chunks is") {
    gated::open = false;
    gated::waiting = 0;
    std::atomic<int> early{0}, ready{0};
    launch_threads(2, [&](world& w) {
        intra_node::shared_memory node(w, 4 * elements);
        gpu::summing_threads team(w, node, 2, 2);
        team.start<gated, float>();
        w.barrier();
        team.hand_over(bucket_at(node.memory()));
        while (gated::waiting.load() < 4) std::this_thread::yield(); // both threads of both ranks
        for (int i = 0; i < 100; ++i) early += team.next_is_summed();
        if (ready.fetch_add(1) == 1) gated::open = true;
        while (!team.next_is_summed()) std::this_thread::yield();
        for (int i = 0; i < 100; ++i) early += team.next_is_summed(); // one is all there was
        w.barrier();
        return 0;
    });
    CHECK(early == 0);
}

TEST_CASE("summing threads: they end with buckets under way, and where none was started or handed over") {
    gated::open = false;
    gated::waiting = 0;
    launch_threads(2, [](world& w) {
        intra_node::shared_memory node(w, 4 * elements * 4);
        { gpu::summing_threads not_started(w, node, 3, 4); }
        {
            gpu::summing_threads idle(w, node, 3, 4);
            idle.start<gated, float>();
        }
        std::thread opener;
        {
            gpu::summing_threads team(w, node, 3, 4);
            team.start<gated, float>();
            w.barrier();
            for (std::size_t b = 0; b < 4; ++b) team.hand_over(bucket_at(node.memory() + b * 4 * elements));
            while (gated::waiting.load() < 6) std::this_thread::yield();
            if (w.rank() == 0)
                opener = std::thread([] {
                    std::this_thread::yield();
                    gated::open = true;
                });
        } // waits for those three, which wait for the gate
        if (opener.joinable()) opener.join();
        w.barrier();
        return 0;
    });
    CHECK(gated::waiting.load() >= 6);
}

TEST_CASE("summing threads: by the cores that the ranks may run on") {
    std::vector<std::size_t> found(2, 99);
    launch_threads(2, [&](world& w) {
        cpu_set_t before, one;
        CPU_ZERO(&one);
        if (::sched_getaffinity(0, sizeof before, &before) != 0) return 1;
        for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
            if (CPU_ISSET(static_cast<std::size_t>(core), &before))
                CPU_SET(static_cast<std::size_t>(core), &one);
        std::size_t const free = gpu::summing_threads::by_cores(w);
        if (free != gpu::summing_threads::by_cores(2, CPU_COUNT(&before), CPU_COUNT(&before))) return 2;
        if (w.rank() == 0) ::sched_setaffinity(0, sizeof one, &one);
        found[static_cast<std::size_t>(w.rank())] = gpu::summing_threads::by_cores(w);
        ::sched_setaffinity(0, sizeof before, &before);
        return w.rank() == 0 || found[1] == free ? 0 : 3; // the other rank may use all of them as before
    });
    CHECK(found[0] == 0);
}
