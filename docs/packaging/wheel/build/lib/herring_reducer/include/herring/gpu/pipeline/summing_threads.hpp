// herring: threads of a rank that sum its chunks of buckets in host memory, beside the thread that polls.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_SUMMING_THREADS_HPP
#define HERRING_GPU_PIPELINE_SUMMING_THREADS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/execution.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/threads.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <pthread.h>
#include <sched.h>

namespace HERRING_NAMESPACE::gpu {

/// Threads of a rank that sum its chunks of the node's buckets, beside the thread that polls.
///
/// Shape:    T threads: thread t sums every T-th of this rank's chunks, in rank order: the bits of one
///           thread.
/// Order:    a bucket is handed over when all local ranks have arrived at it, and summed when each thread is
///           done with it. A thread goes on with the next bucket without the others.
/// Cost:     threads sleep on a futex while there is nothing to sum; two system calls per bucket. Nothing is
///           allocated after `start`.
/// Threads:  all functions: the thread that polls, and before it the thread that constructs.
/// Lifetime: refers to the node's memory; copies the address and the shard of an execution. The destructor
///           waits until each thread is done with its present bucket; later buckets are not summed.
class summing_threads {
  public:
    /// `outstanding`: upper bound on buckets that are handed over and not summed.
    summing_threads(world const& ranks, intra_node::shared_memory& node, std::size_t threads,
                    std::size_t outstanding)
        : node_(node), rank_(ranks.rank()), local_(ranks.local_rank()), size_(ranks.local_size()),
          buckets_(threads == 0 ? 0 : std::bit_ceil(outstanding)), threads_(threads) {
        for (std::size_t t = 0; t < threads; ++t) {
            threads_[t].of = this;
            threads_[t].number = t;
            threads_[t].sources = array_of<kernel::source>(at(size_));
            threads_[t].targets = array_of<std::byte>(at(size_) * sizeof(void*));
        }
    }
    summing_threads(summing_threads const&) = delete;
    summing_threads& operator=(summing_threads const&) = delete;
    ~summing_threads() {
        if (started_ == 0) return;
        herring::detail::blocked_threads::own(-static_cast<int>(started_));
        ended_.store(true, std::memory_order_relaxed);
        publish();
        for (std::size_t t = 0; t < started_; ++t) ::pthread_join(threads_[t].handle, nullptr);
    }

    /// Returns the number of threads that suits a rank: 4 / ranks, at most as many as there are cores beside
    /// those of the ranks.
    static constexpr std::size_t by_cores(int ranks, int of_node, int of_rank) noexcept {
        return at(std::max(0, std::min({4 / ranks, (of_node - ranks) / ranks, of_rank - 1})));
    }
    /// Returns the same number for the cores that this node's ranks may run on. Collective.
    HERRING_SETUP static std::size_t by_cores(world& ranks) {
        ::cpu_set_t mine, node;
        CPU_ZERO(&mine);
        CPU_ZERO(&node);
        (void)::sched_getaffinity(0, sizeof mine, &mine);
        gather_result const all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)));
        for (int const rank : ranks.topology().members(ranks.node())) {
            auto const sent = all[static_cast<std::size_t>(rank)];
            ::cpu_set_t cores;
            if (sent.size() != sizeof cores)
                throw error(errc::mismatch, ranks.rank(), rank, "construction",
                            "it is in another collective; give the intra-node reducer the same tuning on "
                            "every rank");
            std::memcpy(&cores, sent.data(), sizeof cores);
            CPU_OR(&node, &node, &cores);
        }
        return by_cores(ranks.local_size(), CPU_COUNT(&node), CPU_COUNT(&mine));
    }

    /// Starts the threads, for buckets of this type and rule.
    ///
    /// Errors:   `no_resources`.
    template <class Update, class Element> HERRING_SETUP void start() {
        for (; started_ < threads_.size(); ++started_) {
            int const refused = herring::detail::start_thread(
                threads_[started_].handle,
                [](void* self) -> void* {
                    auto& me = *static_cast<thread*>(self);
                    me.of->template run<Update, Element>(me);
                    return nullptr;
                },
                &threads_[started_]);
            if (refused != 0)
                throw error(errc::no_resources, rank_, -1, "construction",
                            {"cannot start a thread that sums: ", std::strerror(refused),
                             herring::detail::thread_advice(), "; or use staging_tuning{.sum_threads = 0}"});
            herring::detail::blocked_threads::own(1);
        }
    }

    /// True if the threads sum this execution: a bucket of one node in which this rank has at least two
    /// chunks per thread. Waking a thread may take as long as summing a chunk.
    bool take(execution const& x) const noexcept {
        return started_ > 0 && x.path == route::local && x.shard_count == 1 && x.shards->owner < 0 &&
               x.shards->chunks >= 2 * started_ * at(size_);
    }
    /// Hands a bucket to the threads. All local ranks have arrived at it.
    void hand_over(execution const& x) noexcept {
        buckets_[handed_.load(std::memory_order_relaxed) & (buckets_.size() - 1)] = {x.own, *x.shards,
                                                                                     x.rule};
        publish();
    }
    /// True if the oldest bucket that was handed over and not reported yet is summed; reports it.
    bool next_is_summed() noexcept {
        if (!is_summed(reported_)) return false;
        ++reported_;
        return true;
    }

  private:
    template <class Value> using array_of = herring::detail::fixed_array<Value>;
    struct bucket {
        std::byte* own = nullptr; // begin of this rank's part
        shard of{};
        std::uint8_t rule = 0; // `execution::rule`
    };
    struct alignas(128) thread {
        summing_threads* of = nullptr;
        std::size_t number = 0;
        pthread_t handle{};
        array_of<kernel::source> sources;
        array_of<std::byte> targets;        // room for a pointer per local rank
        std::atomic<std::uint32_t> done{0}; // number of buckets
    };

    static constexpr std::size_t at(int number) noexcept { return static_cast<std::size_t>(number); }

    void publish() noexcept {
        handed_.fetch_add(1, std::memory_order_release);
        herring::detail::futex_wake(handed_, false);
    }
    bool is_summed(std::uint32_t number) const noexcept { // numbers wrap
        for (thread const& one : threads_)
            if (static_cast<std::int32_t>(one.done.load(std::memory_order_seq_cst) - number) <= 0)
                return false;
        return true;
    }

    template <class Update, class Element> void run(thread& me) noexcept {
        for (std::uint32_t next = 0;; ++next) {
            while (handed_.load(std::memory_order_acquire) == next)
                herring::detail::futex_wait(handed_, next, std::chrono::seconds(1), false);
            if (ended_.load(std::memory_order_relaxed)) return;
            sum<Update, Element>(buckets_[next & (buckets_.size() - 1)], me);
            me.done.store(next + 1,
                          std::memory_order_seq_cst); // if two threads end at once, one sees the other
            if (is_summed(next)) node_.wake();
        }
    }

    template <class Update, class Element> void sum(bucket const& what, thread& me) noexcept {
        auto** const targets = reinterpret_cast<Element**>(me.targets.data());
        shard const& of = what.of;
        for (std::size_t k = at(local_) + me.number * at(size_); k < of.chunks;
             k += threads_.size() * at(size_)) {
            std::size_t const from = k * of.chunk_elements;
            for (int l = 0; l < size_; ++l) {
                std::byte* const place = node_.peer(l, what.own) + (of.offset + from) * sizeof(Element);
                me.sources[at(l)] = {place};
                targets[l] = reinterpret_cast<Element*>(place);
            }
            kernel::fold<Update, Element>({}, std::span<kernel::source const>(me.sources.data(), at(size_)),
                                          {}, std::span<Element* const>(targets, at(size_)),
                                          std::min(of.chunk_elements, of.elements - from), size_, what.rule);
        }
    }

    intra_node::shared_memory& node_;
    int const rank_, local_, size_;
    array_of<bucket> buckets_; // bucket n lies at n mod its size, a power of two: numbers wrap
    array_of<thread> threads_;
    std::size_t started_ = 0;
    std::uint32_t reported_ = 0;           // buckets that `next_is_summed` has reported
    std::atomic<bool> ended_{false};       // set before `handed_` changes
    std::atomic<std::uint32_t> handed_{0}; // number of buckets; the threads sleep on it
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_SUMMING_THREADS_HPP
