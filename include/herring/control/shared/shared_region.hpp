// herring: the collectives of launched ranks, over memory that all map: forked processes, or threads of one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_SHARED_REGION_HPP
#define HERRING_CONTROL_SHARED_SHARED_REGION_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/shared/shared_failures.hpp"
#include "herring/control/world_state.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/identity.hpp"
#include "herring/model/failure_detector_options.hpp"
#include "herring/net/life_signs.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

namespace HERRING_NAMESPACE::detail {

/// One mapping that every rank sees at the same address, and the collectives on it.
///
/// Collectives are numbered. A rank is at most one number ahead of any other, so that contributions alternate
/// between two halves, and one barrier a round is enough.
/// Cost:   barrier: one fetch_add a rank and one cache line read by all; all_gather of B bytes:
///         ⌈B/area_bytes⌉ barriers.
class shared_region : public shared_failures {
  public:
    /// Returns a region outside the heap: forked ranks must see it. Threads use the same, with private
    /// futexes.
    static shared_region* make(int ranks, bool processes, failure_detector_options const& times) {
        std::size_t const bytes = bytes_for(ranks, sizeof(shared_region));
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            throw error(errc::no_resources, -1, -1, "launch",
                        {"mmap of ", bytes, " bytes for ", ranks, " ranks failed: ", std::strerror(errno),
                         "; free memory or launch fewer ranks"});
        return ::new (at) shared_region(ranks, processes, times);
    }

    /// Gives one hold back; the last holder of this process unmaps.
    void release() noexcept {
        if (processes_ || holders_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ::munmap(this, bytes_for(ranks_, sizeof(shared_region)));
    }
    void hold() noexcept {
        if (!processes_) holders_.fetch_add(1, std::memory_order_relaxed);
    }

    std::uint64_t job() const noexcept { return job_; }

    /// The state of one rank between its collectives.
    struct collective_cursor {
        int rank = 0;
        world_state* state = nullptr;
        std::uint64_t number = 0; // of the last collective that it entered
        int spins = 0;            // before it sleeps
    };

    collective_cursor cursor_of(int rank) const noexcept {
        collective_cursor at;
        at.rank = rank;
        at.spins = ranks_ <= usable_cores() ? 4000 : 0;
        return at;
    }

    void barrier(collective_cursor& at, std::string_view operation, time_point deadline) {
        begin(at, operation, collective_kind::barrier, 0);
        arrive_and_wait(at, operation, deadline);
    }

    gather_result all_gather(collective_cursor& at, std::string_view operation,
                             std::span<std::byte const> mine, time_point deadline) {
        std::size_t const ranks = static_cast<std::size_t>(ranks_);
        gather_result all;
        std::size_t longest = mine.size();
        for (std::size_t offset = 0; offset == 0 || offset < longest; offset += area_bytes) {
            std::size_t const half = begin(at, operation, collective_kind::all_gather, mine.size());
            if (offset < mine.size())
                std::memcpy(area(at.rank, half), mine.data() + offset,
                            least(mine.size() - offset, area_bytes));
            arrive_and_wait(at, operation, deadline);
            if (offset == 0) {
                fixed_array<std::size_t> sizes(ranks);
                for (std::size_t r = 0; r < ranks; ++r) {
                    sizes[r] = slot_of(static_cast<int>(r)).contributions[half].bytes;
                    if (sizes[r] > most_bytes)
                        fail_and_throw(at,
                                       failure::make(errc::protocol, at.rank, static_cast<int>(r), operation,
                                                     {"it says that it gives ", sizes[r], " bytes"}));
                    if (sizes[r] > longest) longest = sizes[r];
                }
                all = gather_result(std::move(sizes));
            }
            for (std::size_t r = 0; r < ranks; ++r) {
                int const rank = static_cast<int>(r);
                if (slot_of(rank).contributions[half].kind != collective_kind::all_gather)
                    throw_conflict(at, rank, operation);
                if (offset < all[r].size())
                    std::memcpy(all[r].data() + offset, area(rank, half),
                                least(all[r].size() - offset, area_bytes));
            }
        }
        return all;
    }

  private:
    static constexpr std::size_t most_bytes = std::size_t{1} << 40; // of a rank: the sum of all is below 2^64

    shared_region(int ranks, bool processes, failure_detector_options const& times) noexcept
        : shared_failures(ranks, sizeof(shared_region), processes, times), job_(random_bits()) {}

    static std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

    bool is_complete(collective_cursor const& at) const noexcept {
        return completed_.load(std::memory_order_seq_cst) >= at.number;
    }
    bool has_arrived(collective_cursor const& at, int rank) noexcept {
        return slot_of(rank).arrived.load(std::memory_order_acquire) >= at.number;
    }

    /// Returns the half for this rank's contribution.
    std::size_t begin(collective_cursor& at, std::string_view operation, collective_kind kind,
                      std::size_t bytes) {
        if (has_failed()) throw_failure(at, operation);
        std::size_t const half = ++at.number & 1;
        slot_of(at.rank).contributions[half] = {kind, bytes};
        return half;
    }

    void arrive_and_wait(collective_cursor& at, std::string_view operation, time_point deadline) {
        slot_of(at.rank).arrived.store(at.number, std::memory_order_release);
        std::uint64_t const arrivals = arrivals_.fetch_add(1, std::memory_order_acq_rel) + 1;
        if (arrivals == at.number * static_cast<std::uint64_t>(ranks_)) {
            completed_.store(at.number, std::memory_order_seq_cst);
            wake_sleepers();
            return;
        }
        for (int i = 0; i < at.spins; ++i) {
            if (is_complete(at)) return;
            cpu_pause();
        }
        for (int i = 0; i < 16; ++i) {
            if (is_complete(at)) return;
            ::sched_yield();
        }
        time_point const started = clock::now();
        while (true) {
            std::uint32_t const before = wakes();
            if (is_complete(at)) return;
            if (has_failed()) throw_failure(at, operation);
            if (anyone_left()) throw_departure(at, operation);
            time_point const now = clock::now();
            if (now >= deadline) return wait_past_deadline(at, operation, started);
            if (at.state != nullptr && now - started >= times().long_wait) at.state->check_deadlock();
            sleep(before, std::min<clock::duration>(deadline - now, times().long_wait / 2));
        }
    }

    /// The deadline has passed: throws the root cause, or returns because the last rank has come after all.
    void wait_past_deadline(collective_cursor const& at, std::string_view operation, time_point started) {
        suspicion_report of;
        std::vector<int> missing;
        time_point looked = clock::now();
        while (!is_complete(at)) {
            time_point const now = clock::now();
            of.waited += counted_time(now - looked);
            looked = now;
            missing.clear();
            for (int r = 0; r < ranks_; ++r)
                if (!has_arrived(at, r)) missing.push_back(r);
            // All have come, and the last of them has not marked the collective as complete.
            bool const stuck = missing.empty();
            if (stuck) missing.push_back(at.rank);
            of.why = failure::make(errc::timeout, at.rank, missing[0], operation,
                                   late_text(missing, now - started));
            if (!stuck)
                look_for_root_cause(at.rank, of, missing);
            else if (of.waited > times().reply_timeout)
                fail(at.rank, of.why);
            if (has_failed()) throw_failure(at, operation);
            sleep(wakes(), std::chrono::milliseconds(10));
        }
    }

    [[noreturn]] void throw_failure(collective_cursor const& at, std::string_view operation) {
        std::uint32_t const first = board(at.rank).first_failure->load(std::memory_order_acquire);
        throw error(as_seen_by(failures()[first - 1], at.rank, operation));
    }

    [[noreturn]] void fail_and_throw(collective_cursor const& at, failure const& why) {
        fail(at.rank, why);
        throw_failure(at, why.operation);
    }

    /// Throws where a rank that this collective waits for has left.
    void throw_departure(collective_cursor const& at, std::string_view operation) {
        for (int r = 0; r < ranks_; ++r)
            if (has_left(r) && !has_arrived(at, r))
                fail_and_throw(at, departure(at.rank, r, operation,
                                             "its world was destroyed or its process ended in order"));
    }

    [[noreturn]] void throw_conflict(collective_cursor const& at, int rank, std::string_view operation) {
        fail_and_throw(at,
                       failure::make(errc::mismatch, at.rank, rank, operation,
                                     {"rank ", rank, " called barrier where rank ", at.rank, " called ",
                                      operation, "; let every rank make the same calls in the same order"}));
    }

    std::uint64_t const job_;
    std::atomic<std::uint32_t> holders_{1};
    alignas(64) std::atomic<std::uint64_t> arrivals_{0};  // of all ranks at all collectives
    alignas(64) std::atomic<std::uint64_t> completed_{0}; // number of the last collective that is complete
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHARED_REGION_HPP
