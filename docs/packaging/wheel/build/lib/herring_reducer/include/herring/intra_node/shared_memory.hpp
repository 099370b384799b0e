// herring: `intra_node::shared_memory`: a node's ranks share one mapping, and each sums its chunks in it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_SHARED_MEMORY_HPP
#define HERRING_INTRA_NODE_SHARED_MEMORY_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/intra_node/shared_mapping.hpp"
#include "herring/machine/futex.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/names.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::intra_node {

/// Combines the ranks of a node in one shared mapping.
///
/// Shape:    L local ranks → 1 contributor; local rank l sums the chunks k with k mod L = l.
/// Cost:     each rank's bytes are read once and written once; 128 bytes of flags per rank.
/// Blocks:   never, but in `sleep`: on a futex in the mapping, shared by the node.
/// Lifetime: the mapping has no name: the kernel frees it when its ranks have ended, however they end.
/// Errors:   `no_resources` at construction, on every rank, with the size needed.
template <shared_memory_tuning Tuning> class basic_shared_memory {
  public:
    using axis = axes::intra_node;
    static constexpr char const* name = "shared_memory";
    static constexpr intra_node_facts facts{.tuning = {.local_chunk_bytes = Tuning.local_chunk_bytes,
                                                       .mailbox_bytes = Tuning.mailbox_bytes,
                                                       .split_bytes = Tuning.split_bytes}};

    basic_shared_memory(world& ranks, std::size_t bytes)
        : local_(ranks.local_rank()), size_(ranks.local_size()),
          // No multiple of the page size, at which regions would compete for the same cache sets.
          stride_(detail::round_up(bytes, 4096) + 320), mapping_(ranks, needed()),
          cells_(reinterpret_cast<cell*>(mapping_.bytes().data() + sizeof(event_count))),
          regions_(mapping_.bytes().data() + head()), seen_(static_cast<std::size_t>(size_)) {}

    basic_shared_memory(basic_shared_memory const&) = delete;
    basic_shared_memory& operator=(basic_shared_memory const&) = delete;
    ~basic_shared_memory() {
        cells_[at(local_)].left.store(1, std::memory_order_release);
        wake();
    }

    std::byte* memory() noexcept { return regions_ + stride_ * static_cast<std::size_t>(local_); }
    std::byte* peer(int local, std::byte* own) noexcept {
        return own + static_cast<std::ptrdiff_t>(stride_) * (local - local_);
    }

    void arrive(std::uint64_t execution) noexcept { publish(cells_[at(local_)].arrived, execution + 1); }

    int first_not_arrived(std::uint64_t execution) noexcept {
        for (int l = 0; l < size_; ++l)
            if (l != local_ && seen_[at(l)].arrived <= execution && look_arrived(l) <= execution) return l;
        return -1;
    }

    void finish(std::uint64_t execution, bool notify) noexcept {
        if (notify)
            publish(cells_[at(local_)].finished, execution + 1);
        else
            cells_[at(local_)].finished.store(execution + 1, std::memory_order_release);
    }

    int first_not_finished(std::uint64_t execution) noexcept {
        for (int l = 0; l < size_; ++l)
            if (l != local_ && seen_[at(l)].finished <= execution && look_finished(l) <= execution) return l;
        return -1;
    }

    bool has_left(int local) noexcept {
        if (cells_[at(local)].left.load(std::memory_order_acquire) == 0) return false;
        seen const before = seen_[at(local)]; // the last stores of that rank may become visible only now
        return look_arrived(local) == before.arrived && look_finished(local) == before.finished;
    }

    std::uint32_t listen() noexcept {
        events().sleepers.fetch_add(1, std::memory_order_seq_cst);
        return events().count.load(std::memory_order_acquire);
    }

    void sleep(std::uint32_t heard, time_point until) noexcept {
        detail::futex_wait(events().count, heard, until - clock::now());
        events().sleepers.fetch_sub(1, std::memory_order_relaxed);
    }

    void wake() noexcept {
        events().count.fetch_add(1, std::memory_order_release);
        detail::futex_wake(events().count);
    }

  private:
    // Initial values are the zeroes of the mapping.
    struct alignas(128) event_count {
        std::atomic<std::uint32_t> count;
        std::atomic<std::uint32_t> sleepers;
    };
    // One per rank, and written by this rank only. Each count has a cache line, so that ranks that wait for
    // one count do not slow down stores to the other.
    struct alignas(128) cell {
        std::atomic<std::uint64_t> arrived;              // executions whose data is in place
        alignas(64) std::atomic<std::uint64_t> finished; // executions whose chunks are combined
        std::atomic<std::uint32_t> left;                 // 1: the reducer is destroyed
    };
    struct seen { // last values read from a cell: counts only grow, so old values are often enough
        std::uint64_t arrived = 0;
        std::uint64_t finished = 0;
    };
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

    static std::size_t at(int local) noexcept { return static_cast<std::size_t>(local); }
    event_count& events() noexcept { return *reinterpret_cast<event_count*>(mapping_.bytes().data()); }
    std::size_t head() const noexcept {
        return detail::round_up(sizeof(event_count) + sizeof(cell) * static_cast<std::size_t>(size_), 4096);
    }
    std::size_t needed() const noexcept { return head() + stride_ * static_cast<std::size_t>(size_); }

    std::uint64_t look_arrived(int l) noexcept {
        return seen_[at(l)].arrived = cells_[at(l)].arrived.load(std::memory_order_seq_cst);
    }
    std::uint64_t look_finished(int l) noexcept {
        return seen_[at(l)].finished = cells_[at(l)].finished.load(std::memory_order_seq_cst);
    }

    void publish(std::atomic<std::uint64_t>& count, std::uint64_t value) noexcept {
        // Sequentially consistent: either a sleeper sees the count at its last poll, or this rank sees the
        // sleeper and wakes it.
        count.store(value, std::memory_order_seq_cst);
        if (events().sleepers.load(std::memory_order_seq_cst) != 0) wake();
    }

    int local_;
    int size_;
    std::size_t stride_;
    detail::shared_mapping mapping_;
    cell* cells_;
    std::byte* regions_;
    detail::fixed_array<seen> seen_;
};

/// Shared memory with settings that suit two to eight ranks.
using shared_memory = basic_shared_memory<>;
static_assert(intra_node_policy<shared_memory>);

} // namespace HERRING_NAMESPACE::intra_node

#include "herring/base/compiled_apart.hpp"

#endif // HERRING_INTRA_NODE_SHARED_MEMORY_HPP
