// herring: how far each execution is: one place for all counts, whose order is asserted.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_LEDGER_HPP
#define HERRING_ENGINE_LEDGER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// True if ranks of other nodes take part.
constexpr bool is_networked(route path) noexcept { return path != route::mailbox && path != route::local; }

/// The executions of one rank, in order, each by its number, and how far they are.
///
/// Order:   requested ≥ submitted ≥ arrived (this rank's data is in place) ≥ all_arrived (that of all local
///          ranks); arrived ≥ finished (nothing is pending on this rank) ≥ released (on no local rank).
/// Threads: `request` and what it counts: the one that submits; `released()`: any; the rest: the one that
///          polls.
/// Memory:  one entry for each execution that may be outstanding, and one more.
class execution_ledger {
  public:
    explicit execution_ledger(std::size_t outstanding)
        : mask_(std::bit_ceil(outstanding + 1) - 1), entries_(mask_ + 1) {}
    execution_ledger(execution_ledger const&) = delete;
    execution_ledger& operator=(execution_ledger const&) = delete;

    std::uint64_t mask() const noexcept { return mask_; }
    std::size_t size() const noexcept { return entries_.size(); }
    execution& at(std::uint64_t number) noexcept { return entry_of(number).what; }
    execution const& at(std::uint64_t number) const noexcept { return entries_[number & mask_].what; }

    // ---- counts -------------------------------------------------------------------------------------------

    /// Returns the number of the execution.
    std::uint64_t request(execution const& e) noexcept {
        std::uint64_t const number = requested_.load(std::memory_order_relaxed);
        entry_of(number) = {e, networked_, elements_, 0, 0};
        networked_ += is_networked(e.path);
        elements_ += is_networked(e.path) ? e.elements : 0;
        requested_.store(number + 1, std::memory_order_release);
        return number;
    }
    std::atomic<std::uint64_t> const& requested() const noexcept { return requested_; }
    std::atomic<std::uint64_t> const& released() const noexcept { return released_; }
    std::uint64_t submitted() const noexcept { return submitted_; }
    std::uint64_t arrived() const noexcept { return arrived_; }
    std::uint64_t all_arrived() const noexcept { return all_arrived_; }
    std::uint64_t finished() const noexcept { return finished_; }

    /// True if all that was submitted, as of the last `take_requests`, is released.
    bool is_idle() const noexcept { return submitted_ == released_.load(std::memory_order_relaxed); }

    void take_requests() noexcept { submitted_ = requested_.load(std::memory_order_acquire); }
    void arrive() noexcept {
        assert(arrived_ < submitted_);
        ++arrived_;
    }
    void arrive_all() noexcept {
        assert(all_arrived_ < arrived_);
        ++all_arrived_;
    }
    void finish() noexcept {
        assert(finished_ < arrived_ && entry_of(finished_).pending == 0);
        assert(entry_of(finished_).handled == all_chunks ||
               entry_of(finished_).handled == chunks_of(entry_of(finished_).what));
        ++finished_;
    }
    void release() noexcept {
        std::uint64_t const number = released_.load(std::memory_order_relaxed);
        assert(number < finished_);
        released_.store(number + 1, std::memory_order_release);
    }

    // ---- what is pending in an execution ------------------------------------------------------------------

    /// Something has to be done, or waited for, before this rank has finished the execution.
    void add(std::uint64_t number, std::uint32_t count = 1) noexcept { entry_of(number).pending += count; }
    void done(std::uint64_t number) noexcept {
        assert(entry_of(number).pending > 0);
        --entry_of(number).pending;
    }
    bool is_pending(std::uint64_t number) const noexcept { return entries_[number & mask_].pending > 0; }

    /// This rank handled a chunk: served it or pushed it, or combined it. In debug builds an execution cannot
    /// finish before all chunks of this rank are handled.
    void handled(std::uint64_t number) noexcept { ++entry_of(number).handled; }
    /// The whole bucket at once, whatever its chunks are.
    void handled_all(std::uint64_t number) noexcept { entry_of(number).handled = all_chunks; }
    /// Sets, once, the chunks that this rank handles. A node that does not contribute handles the chunks that
    /// it serves.
    void handles(chunk_stream own, bool contributes, server_id served) noexcept {
        own_ = own;
        contributes_ = contributes;
        served_ = served;
    }
    std::uint32_t chunks_of(execution const& e) const noexcept {
        std::uint32_t count = 0;
        for (std::uint32_t i = 0; i < e.shard_count; ++i)
            if (own_.handles(e.shards[i]) && (contributes_ || e.shards[i].server == served_))
                count += own_.count(e.shards[i]);
        return count;
    }

    // ---- executions that other nodes take part in ---------------------------------------------------------

    /// The number that messages of an execution carry: how many networked ones came before it. Nodes may be
    /// apart in executions of a node's own, not in these.
    std::uint64_t network_number(std::uint64_t number) const noexcept {
        return entries_[number & mask_].networked_before;
    }
    /// Elements of all networked executions before it.
    std::uint64_t elements_before(std::uint64_t number) const noexcept {
        return entries_[number & mask_].elements_before;
    }
    /// Networked executions before `number`, which may be the next one to be submitted.
    std::uint64_t networked_before(std::uint64_t number) const noexcept {
        if (number == 0) return 0;
        entry const& last = entries_[(number - 1) & mask_];
        return last.networked_before + is_networked(last.what.path);
    }

  private:
    static constexpr std::uint32_t all_chunks = ~std::uint32_t{0};
    struct entry {
        execution what;
        std::uint64_t networked_before = 0;
        std::uint64_t elements_before = 0;
        std::uint32_t pending = 0;
        std::uint32_t handled = 0; // chunks
    };
    entry& entry_of(std::uint64_t number) noexcept { return entries_[number & mask_]; }

    std::uint64_t mask_;
    fixed_array<entry> entries_;
    chunk_stream own_;
    bool contributes_ = true;
    server_id served_;
    std::uint64_t networked_ = 0;             // of the thread that submits
    std::uint64_t elements_ = 0;              // of networked executions; of the thread that submits
    std::atomic<std::uint64_t> requested_{0}; // written by the thread that submits
    std::atomic<std::uint64_t> released_{0};  // written by the thread that polls
    std::uint64_t submitted_ = 0;             // `requested_`, as of the last poll
    std::uint64_t arrived_ = 0;
    std::uint64_t all_arrived_ = 0;
    std::uint64_t finished_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_LEDGER_HPP
