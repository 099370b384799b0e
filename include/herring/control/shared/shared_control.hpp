// herring: control over memory that all ranks map: forked processes, or threads of one process.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP
#define HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/futex.hpp"
#include "herring/base/identity.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/failure_handler.hpp"
#include "herring/control/failure/liveness.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/shared/failure_watch.hpp"
#include "herring/control/shared/shown_report.hpp"
#include "herring/control/world_state.hpp"
#include "herring/error.hpp"
#include "herring/gather_result.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

namespace HERRING_NAMESPACE::detail {

/// Lets the other thread of the core run for a moment.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// One mapping that every rank sees at the same address, and the collectives on it.
///
/// Collectives are numbered. A rank is at most one number ahead of any other, so that everything a rank shows
/// lies in two halves, used in turn, and one barrier a round is enough.
/// Shape:  a board, then for each rank a slot and two areas of `area_bytes`.
/// Cost:   barrier: one fetch_add a rank and one cache line read by all; all_gather of B bytes:
/// ⌈B/area_bytes⌉ barriers.
class shared_region {
  public:
    static constexpr std::size_t area_bytes = 4096;

    /// Not on the heap: forked ranks must see it. Threads use the same, with private futexes.
    static shared_region* make(int ranks, bool processes, liveness const& times = {}) {
        std::size_t const bytes = bytes_for(ranks);
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            throw error(errc::no_resources, -1, -1, "launch",
                        "mmap of " + std::to_string(bytes) + " bytes for " + std::to_string(ranks) +
                            " ranks failed: " + std::strerror(errno) + "; free memory or launch fewer ranks");
        return ::new (at) shared_region(ranks, processes, times);
    }

    /// One holder less; the last one of this process unmaps.
    void release() noexcept {
        if (processes_ || holders_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ::munmap(this, bytes_for(ranks_));
    }
    void hold() noexcept {
        if (!processes_) holders_.fetch_add(1, std::memory_order_relaxed);
    }

    std::uint64_t job() const noexcept { return job_; }
    int ranks() const noexcept { return ranks_; }
    liveness const& times() const noexcept { return times_; }
    std::atomic<std::uint32_t> const& first_failure() const noexcept { return first_failure_; }
    failure const* failures() const noexcept {
        return reinterpret_cast<failure const*>(base() + failures_at());
    }

    /// `by` is a rank, or `ranks()` for the parent of forked ranks. Each has a cell of its own, so that a
    /// rank killed while it writes leaves the others free to speak.
    void fail(int by, failure const& why) noexcept {
        slot& mine = slot_of(by);
        if (mine.speaking.exchange(1, std::memory_order_acq_rel) != 0) return;
        failure* const cell = reinterpret_cast<failure*>(base() + failures_at()) + by;
        std::memcpy(static_cast<void*>(cell), &why, sizeof why);
        std::uint32_t none = 0;
        first_failure_.compare_exchange_strong(none, static_cast<std::uint32_t>(by) + 1,
                                               std::memory_order_seq_cst);
        ring();
        for (int r = 0; r < ranks_; ++r)
            if (news_of(r).wanted()) news_of(r).bring();
    }
    failure_news news_of(int rank) noexcept {
        return {slot_of(rank).news, first_failure_, failures(), processes_};
    }

    /// `rank` takes no further part. Whoever waits for it is told.
    void leave(int rank) noexcept {
        slot_of(rank).left.store(1, std::memory_order_release);
        left_.fetch_add(1, std::memory_order_seq_cst);
        ring();
    }

    /// Who launched the ranks has seen that the process of `rank` is stopped, or goes on.
    void stopped(int rank, bool is) noexcept {
        slot_of(rank).stopped.store(is ? 1 : 0, std::memory_order_release);
    }

    std::atomic<std::uint32_t> const& question() const noexcept { return question_; }
    std::atomic<std::uint64_t>& testimony_of(int rank) noexcept { return slot_of(rank).says; }

    /// One look at what the ranks say to the question that `of` put, which is put now if it was not yet; announces
    /// the verdict as soon as it can be reached. Everything lies open here, so that each accuser judges for itself.
    void report_suspicion(int by, suspicion_report& of) noexcept {
        judge(by, of, std::span<int const>(&of.why.peer, 1));
    }

    /// Shows where `rank` stands, and looks whether that and what others show proves a deadlock.
    HERRING_SETUP void show_blocked(int rank, blocked_report const& mine) noexcept {
        report_of(rank).show(mine);
        try {
            fixed_array<blocked_report> all(static_cast<std::size_t>(ranks_));
            for (int r = 0; r < ranks_; ++r) report_of(r).read(all[static_cast<std::size_t>(r)]);
            deadlock const found = find_deadlock({all.data(), all.size()}, !processes_);
            if (found.rank >= 0) fail(rank, describe(found));
        } catch (std::bad_alloc const&) {
            // The deadline will end it.
        }
    }

    /// What one rank remembers between its collectives.
    struct place {
        int rank = 0;
        world_state* state = nullptr;
        std::uint64_t generation = 0;
        int spins = 0;
    };

    place place_of(int rank) const noexcept {
        place made;
        made.rank = rank;
        made.spins = ranks_ <= usable_cores() ? 4000 : 0;
        return made;
    }

    void barrier(place& at, std::string_view operation, time_point deadline) {
        begin(at, operation, kind::barrier, 0);
        arrive_and_wait(at, operation, deadline);
    }

    gather_result all_gather(place& at, std::string_view operation, std::span<std::byte const> mine,
                             time_point deadline) {
        std::size_t const ranks = static_cast<std::size_t>(ranks_);
        gather_result all;
        std::size_t longest = mine.size();
        for (std::size_t offset = 0; offset == 0 || offset < longest; offset += area_bytes) {
            std::size_t const half = begin(at, operation, kind::all_gather, mine.size());
            if (offset < mine.size())
                std::memcpy(area(at.rank, half), mine.data() + offset,
                            least(mine.size() - offset, area_bytes));
            arrive_and_wait(at, operation, deadline);
            if (offset == 0) {
                fixed_array<std::size_t> sizes(ranks);
                for (std::size_t r = 0; r < ranks; ++r) {
                    sizes[r] = slot_of(static_cast<int>(r)).show[half].bytes;
                    if (sizes[r] > longest) longest = sizes[r];
                }
                all = gather_result(std::move(sizes));
            }
            for (std::size_t r = 0; r < ranks; ++r) {
                int const rank = static_cast<int>(r);
                if (slot_of(rank).show[half].what != kind::all_gather) differs(at, rank, operation);
                if (offset < all[r].size())
                    std::memcpy(all[r].data() + offset, area(rank, half),
                                least(all[r].size() - offset, area_bytes));
            }
        }
        return all;
    }

  private:
    enum class kind : std::uint32_t { none, barrier, all_gather };

    struct shown {
        kind what = kind::none;
        std::size_t bytes = 0;
    };

    struct alignas(64) slot {
        std::atomic<std::uint64_t> arrived{0}; // number of the last collective that this rank entered
        std::atomic<std::uint32_t> left{0};
        std::atomic<std::uint32_t> speaking{0};
        shown show[2];
        std::atomic<std::uint64_t> says{wait_report::not_waiting};
        std::atomic<std::uint32_t> stopped{0}; // written by who launched it
        std::atomic<std::uint32_t> news{0};    // see failure_news
    };
    static_assert(sizeof(slot) == 64);

    shared_region(int ranks, bool processes, liveness const& times) noexcept
        : ranks_(ranks), processes_(processes), times_(times), job_(random_bits()) {
        for (int r = 0; r <= ranks; ++r) {
            ::new (static_cast<void*>(&slot_of(r))) slot;
            ::new (static_cast<void*>(base() + failures_at() + sizeof(failure) * static_cast<std::size_t>(r)))
                failure;
        }
    }

    static std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }
    static std::size_t slots_at() noexcept { return (sizeof(shared_region) + 63) / 64 * 64; }
    std::size_t failures_at() const noexcept {
        return slots_at() + sizeof(slot) * (static_cast<std::size_t>(ranks_) + 1);
    }
    static std::size_t bytes_for(int ranks) noexcept {
        std::size_t const n = static_cast<std::size_t>(ranks);
        return slots_at() + (sizeof(slot) + sizeof(failure)) * (n + 1) + 64 + 2 * area_bytes * n +
               sizeof(shown_report) * n;
    }
    std::byte* base() noexcept { return reinterpret_cast<std::byte*>(this); }
    std::byte const* base() const noexcept { return reinterpret_cast<std::byte const*>(this); }
    slot& slot_of(int rank) noexcept {
        return *reinterpret_cast<slot*>(base() + slots_at() + sizeof(slot) * static_cast<std::size_t>(rank));
    }
    std::size_t areas_at() const noexcept {
        return (failures_at() + sizeof(failure) * (static_cast<std::size_t>(ranks_) + 1) + 63) / 64 * 64;
    }
    std::byte* area(int rank, std::size_t half) noexcept {
        return base() + areas_at() + area_bytes * (2 * static_cast<std::size_t>(rank) + half);
    }
    shown_report& report_of(int rank) noexcept {
        std::size_t const begin = areas_at() + 2 * area_bytes * static_cast<std::size_t>(ranks_);
        return *reinterpret_cast<shown_report*>(base() + begin +
                                                sizeof(shown_report) * static_cast<std::size_t>(rank));
    }

    std::size_t begin(place& at, std::string_view operation, kind what, std::size_t bytes) {
        if (first_failure_.load(std::memory_order_acquire) != 0) throw_failure(at, operation);
        std::size_t const half = ++at.generation & 1;
        slot_of(at.rank).show[half] = {what, bytes};
        return half;
    }

    void arrive_and_wait(place& at, std::string_view operation, time_point deadline) {
        slot_of(at.rank).arrived.store(at.generation, std::memory_order_release);
        std::uint64_t const here = count_.fetch_add(1, std::memory_order_acq_rel) + 1;
        if (here == at.generation * static_cast<std::uint64_t>(ranks_)) {
            open_.store(at.generation, std::memory_order_seq_cst);
            ring();
            return;
        }
        for (int i = 0; i < at.spins; ++i) {
            if (open_.load(std::memory_order_acquire) >= at.generation) return;
            relax();
        }
        for (int i = 0; i < 16; ++i) {
            if (open_.load(std::memory_order_acquire) >= at.generation) return;
            ::sched_yield();
        }
        time_point const started = clock::now();
        while (true) {
            std::uint32_t const heard = bell_.load(std::memory_order_seq_cst);
            if (open_.load(std::memory_order_seq_cst) >= at.generation) return;
            if (first_failure_.load(std::memory_order_seq_cst) != 0) throw_failure(at, operation);
            if (left_.load(std::memory_order_seq_cst) != 0) look_for_leavers(at, operation);
            time_point const now = clock::now();
            if (now >= deadline) return late(at, operation, started);
            if (at.state != nullptr && now - started >= world_state::long_wait) at.state->check_deadlock();
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            futex_wait(bell_, heard, std::min<clock::duration>(deadline - now, world_state::long_wait / 2),
                       processes_);
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        }
    }

    void ring() noexcept {
        bell_.fetch_add(1, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
        futex_wake(bell_, processes_);
    }

    [[noreturn]] void throw_failure(place const& at, std::string_view operation) const {
        std::uint32_t const first = first_failure_.load(std::memory_order_acquire);
        throw error(as_seen_by(failures()[first - 1], at.rank, operation));
    }

    [[noreturn]] void fail_and_throw(place const& at, failure const& why) {
        fail(at.rank, why);
        throw_failure(at, why.operation);
    }

    void look_for_leavers(place const& at, std::string_view operation) {
        for (int r = 0; r < ranks_; ++r) {
            slot& theirs = slot_of(r);
            if (theirs.left.load(std::memory_order_acquire) == 0) continue;
            if (theirs.arrived.load(std::memory_order_acquire) >= at.generation) continue;
            fail_and_throw(
                at, failure::make(errc::peer_lost, at.rank, r, operation,
                                  "it left (its world was destroyed or its process ended in order) while "
                                  "others still wait for it; let every rank make the same calls"));
        }
    }

    // The deadline has passed: throws who is to blame, or returns because the last one has come after all.
    void late(place const& at, std::string_view operation, time_point started) {
        suspicion_report of;
        std::vector<int> missing;
        time_point looked = clock::now();
        while (open_.load(std::memory_order_acquire) < at.generation) {
            time_point const now = clock::now();
            of.waited += counted_time(now - looked);
            looked = now;
            missing.clear();
            for (int r = 0; r < ranks_; ++r)
                if (slot_of(r).arrived.load(std::memory_order_acquire) < at.generation) missing.push_back(r);
            // All have come, and the last of them does not say so.
            bool const stuck = missing.empty();
            if (stuck) missing.push_back(at.rank);
            of.why = failure::make(errc::timeout, at.rank, missing[0], operation,
                                   late_text(missing, now - started));
            if (!stuck)
                judge(at.rank, of, missing);
            else if (of.waited > times_.answer)
                fail(at.rank, of.why);
            if (first_failure_.load(std::memory_order_acquire) != 0) throw_failure(at, operation);
            std::uint32_t const heard = bell_.load(std::memory_order_seq_cst);
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            futex_wait(bell_, heard, std::chrono::milliseconds(10), processes_);
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        }
    }

    void judge(int by, suspicion_report& of, std::span<int const> accused) noexcept {
        if (first_failure_.load(std::memory_order_acquire) != 0) return;
        if (of.probe == 0) of.probe = question_.fetch_add(1, std::memory_order_seq_cst) + 1;
        if (of.certain || of.why.peer < 0 || of.why.peer >= ranks_) {
            // Who launched the ranks may be about to say how that one ended. Threads have nobody to say more.
            if (!processes_ || of.waited >= news_time) fail(by, of.why);
            return;
        }
        root_cause const found = detail::find_root_cause(by, accused, ranks_, [&](int r) noexcept {
            slot const& theirs = slot_of(r);
            if (theirs.left.load(std::memory_order_acquire) != 0) return wait_report{rank_state::left, -1};
            if (theirs.stopped.load(std::memory_order_acquire) != 0)
                return wait_report{rank_state::stopped, -1};
            wait_report heard = wait_report::read(theirs.says.load(std::memory_order_acquire), of.probe);
            if (heard.how == rank_state::unheard && of.waited >= times_.answer)
                heard.how = rank_state::silent;
            return heard;
        });
        if (found.reached()) fail(by, describe(of.why, found));
    }

    [[noreturn]] void differs(place const& at, int rank, std::string_view operation) {
        fail_and_throw(at,
                       failure::make(errc::mismatch, at.rank, rank, operation,
                                     "it called barrier where this rank called " + std::string(operation) +
                                         "; let every rank make the same calls in the same order"));
    }

    static constexpr std::chrono::milliseconds news_time{300};

    int const ranks_;
    bool const processes_;
    liveness const times_;
    std::uint64_t const job_;
    std::atomic<std::uint32_t> holders_{1};
    alignas(64) std::atomic<std::uint32_t> first_failure_{0};
    std::atomic<std::uint32_t> question_{0}; // read as often as the first failure, and as seldom written
    alignas(64) std::atomic<std::uint64_t> count_{0}; // arrivals of all ranks at all collectives
    alignas(64) std::atomic<std::uint64_t> open_{0};  // number of the last collective that is complete
    std::atomic<std::uint32_t> bell_{0};              // changes whenever a sleeper has to look again
    std::atomic<std::uint32_t> sleepers_{0};
    std::atomic<std::uint32_t> left_{0};
};

/// One rank's handle on a region: the backend of launched worlds.
class control_shared {
  public:
    /// Takes over one hold on the region.
    static control_handle make(shared_region* region, int rank, failure_handler const& on_failure = {}) {
        return control_handle::of(*new control_shared(region, rank, on_failure));
    }

    gather_result all_gather(std::string_view operation, std::span<std::byte const> mine,
                             time_point deadline) {
        return region_->all_gather(at_, operation, mine, deadline);
    }
    void barrier(std::string_view operation, time_point deadline) {
        region_->barrier(at_, operation, deadline);
    }
    void fail(failure const& why) noexcept { region_->fail(at_.rank, why); }
    void report_suspicion(suspicion_report& of) noexcept { region_->report_suspicion(at_.rank, of); }
    void attach(world_state& state) noexcept { at_.state = &state; }
    void check_deadlock() noexcept {
        blocked_report mine;
        if (at_.state->blocked(mine)) region_->show_blocked(at_.rank, mine);
    }
    void leave() noexcept { region_->leave(at_.rank); }
    void destroy() noexcept {
        shared_region* const region = region_;
        region->leave(at_.rank);
        delete this; // its thread ends
        region->release();
    }
    control_board board() noexcept {
        return {&region_->first_failure(), region_->failures(), &region_->question(),
                &region_->testimony_of(at_.rank)};
    }

  private:
    control_shared(shared_region* region, int rank, failure_handler const& on_failure)
        : region_(region), at_(region->place_of(rank)), watch_(region->news_of(rank), rank, on_failure) {}

    shared_region* region_;
    shared_region::place at_;
    failure_watch watch_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP
