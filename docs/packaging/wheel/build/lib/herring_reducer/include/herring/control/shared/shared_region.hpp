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
#include "herring/control/split.hpp"
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
        auto* const made = ::new (at) shared_region(ranks, processes, times);
        made->map_blocks();
        return made;
    }

    /// Gives one hold back; the last holder of this process unmaps. Not of a group.
    void release() noexcept {
        if (!processes_ && holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        if (users_ != nullptr) ::munmap(users_, bytes_of_blocks());
        ::munmap(this, bytes_for(ranks_, sizeof(shared_region)));
    }
    void hold() noexcept {
        if (!processes_) holders_.fetch_add(1, std::memory_order_relaxed);
    }

    std::uint64_t job() const noexcept { return job_; }
    /// `split_group::number`; 0: the launched world.
    std::uint64_t number() const noexcept { return number_; }

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
        at.spins = launched_.ranks() <= usable_cores() ? 4000 : 0; // all groups wait on this machine
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

    /// Splits this world: returns the group of this rank, nullptr where it is in none. Each rank of a group
    /// gives `give_back` a call in the end.
    ///
    /// Errors:  `no_resources` on all ranks of groups where no block is free, which does not end this world.
    HERRING_SETUP shared_region* split(collective_cursor& at, std::string_view operation,
                                       split_choice const& mine, time_point deadline) {
        std::size_t const half = begin(at, operation, collective_kind::split, 0);
        std::memcpy(area(at.rank, half), mine.write().data(), split_choice::bytes);
        arrive_and_wait(at, operation, deadline);
        for (int r = 0; r < ranks_; ++r)
            if (slot_of(r).contributions[half].kind != collective_kind::split)
                throw_conflict(at, r, operation);
        std::size_t const place = slot_of(at.rank).contributions[half].bytes;
        auto* const made =
            place == 0 ? nullptr : reinterpret_cast<shared_region*>(launched().block(0) + (place - 1));
        if (has_failed()) { // perhaps before some rank knew that the split was complete
            if (made != nullptr) made->give_back(made->rank_of(launched_rank(at.rank)));
            throw_failure(at, operation);
        }
        if (made == nullptr && mine.colour >= 0)
            throw error(errc::no_resources, at.rank, -1, operation,
                        {"no memory for more groups: ", most_blocks,
                         " splits of a launched world may have groups at a time; destroy groups that are not "
                         "needed any more"});
        return made;
    }
    /// Returns the number in `of` of each rank of this group.
    HERRING_SETUP std::vector<int> ranks_in(shared_region& of) {
        std::vector<int> ranks(static_cast<std::size_t>(ranks_));
        for (int r = 0; r < ranks_; ++r) ranks[static_cast<std::size_t>(r)] = of.rank_of(launched_rank(r));
        return ranks;
    }

    /// Leaves a group, and gives its memory back: the last of its split frees the block.
    void give_back(int rank) noexcept {
        leave(rank);
        std::byte* const first = launched().block(0);
        auto const which = static_cast<std::size_t>(reinterpret_cast<std::byte*>(this) - first);
        launched().users_[which / launched().block_bytes()].fetch_sub(1, std::memory_order_acq_rel);
    }

    /// Shows, to the whole launched world, that `rank` can only wait, and looks whether the reports of all
    /// ranks are a deadlock. Ends each world in which a rank of it waits.
    ///
    /// Threads:  of one rank, one at a time.
    HERRING_SETUP void report_blocked(int rank, blocked_report const& mine) noexcept {
        shared_region& root = launched();
        root.report_of(launched_rank(rank)).show(mine);
        try {
            fixed_array<blocked_report> all(static_cast<std::size_t>(root.ranks_));
            for (int r = 0; r < root.ranks_; ++r) root.report_of(r).read(all[static_cast<std::size_t>(r)]);
            std::vector<std::uint64_t> living; // looked up behind the reports
            auto const each_world = [&](auto const& visit) {
                visit(root);
                root.each_group(visit);
            };
            each_world([&](shared_region& one) {
                if (!one.has_failed()) living.push_back(one.number_);
            });
            std::span<blocked_report> const reports(all.data(), all.size());
            drop_ended_waits(reports, [&](std::uint64_t number) {
                return std::find(living.begin(), living.end(), number) != living.end();
            });
            deadlock_search const search(reports, !processes_);
            each_world([&](shared_region& one) {
                deadlock found = search.in(one.number_);
                found.rank = one.rank_of(found.rank);
                found.other = one.rank_of(found.other);
                if (found.rank >= 0 && found.other >= 0) one.fail(found.rank, describe(found));
            });
        } catch (std::bad_alloc const&) {
            // The deadline will end the wait.
        }
    }

    /// Calls `visit(region, rank)` for each group that this rank of the launched world is in: the launcher
    /// tells there what became of its process.
    template <class Visit> HERRING_SETUP void each_group_of(int rank, Visit const& visit) {
        each_group([&](shared_region& group) {
            if (int const there = group.rank_of(rank); there >= 0) visit(group, there);
        });
    }

  private:
    /// Calls `visit(region)` for each group; this is the launched world.
    template <class Visit> HERRING_SETUP void each_group(Visit const& visit) {
        for (std::size_t b = 0; users_ != nullptr && b < most_blocks; ++b) {
            std::uint32_t users = users_[b].load(std::memory_order_acquire);
            do { // while this process is a user the block stays as it is
                if (users == 0 || (users & under_construction) != 0) break;
            } while (!users_[b].compare_exchange_weak(users, users + 1, std::memory_order_acq_rel));
            if (users == 0 || (users & under_construction) != 0) continue;
            for (std::byte* at = block(b); at != nullptr;) {
                auto& region = *reinterpret_cast<shared_region*>(at);
                visit(region);
                at = region.last_ ? nullptr : at + bytes_for(region.ranks_, sizeof(shared_region));
            }
            users_[b].fetch_sub(1, std::memory_order_acq_rel);
        }
    }

    static constexpr std::size_t most_blocks = 256;
    static constexpr std::uint32_t under_construction = 1u << 31;
    static constexpr std::size_t most_bytes = std::size_t{1} << 40; // of a rank: the sum of all is below 2^64

    shared_region(int ranks, bool processes, failure_detector_options const& times) noexcept
        : shared_failures(ranks, sizeof(shared_region), processes, times), job_(random_bits()) {}
    /// A group of ranks of `of`.
    shared_region(shared_region& of, std::uint64_t number, std::vector<int> const& ranks, bool last) noexcept
        : shared_failures(static_cast<int>(ranks.size()), sizeof(shared_region), of.processes_, of.times(),
                          &of.launched_, number),
          job_(0), last_(last) {
        for (int r = 0; r < ranks_; ++r)
            launched_rank(r) = of.launched_rank(ranks[static_cast<std::size_t>(r)]);
    }

    shared_region& launched() noexcept { return static_cast<shared_region&>(launched_); }

    // Memory for groups, which all processes have to map before they are forked. A block has room for the
    // groups of any split: for as many regions of one rank as there are ranks. A page costs memory once it is
    // used.
    std::size_t block_bytes() const noexcept {
        return bytes_for(1, sizeof(shared_region)) * static_cast<std::size_t>(ranks_);
    }
    static constexpr std::size_t users_bytes = round_up(sizeof(std::atomic<std::uint32_t>) * most_blocks, 64);
    std::size_t bytes_of_blocks() const noexcept { return users_bytes + most_blocks * block_bytes(); }
    std::byte* block(std::size_t which) noexcept {
        return reinterpret_cast<std::byte*>(users_) + users_bytes + which * block_bytes();
    }
    /// Where the system grants no such mapping, splits are refused.
    void map_blocks() noexcept {
        void* const at = ::mmap(nullptr, bytes_of_blocks(), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) return;
        users_ = static_cast<std::atomic<std::uint32_t>*>(at);
        for (std::size_t b = 0; b < most_blocks; ++b) ::new (&users_[b]) std::atomic<std::uint32_t>(0);
    }

    /// All ranks have given colour and key: constructs the regions of all groups, in one block, before any
    /// rank knows that the split is complete. Each rank finds the place of its group in its slot; 0: there is
    /// none.
    HERRING_SETUP void make_groups(std::size_t half) noexcept {
        if (has_failed() || launched().users_ == nullptr) return;
        try {
            std::vector<split_choice> all(static_cast<std::size_t>(ranks_));
            std::uint32_t users = 0;
            for (int r = 0; r < ranks_; ++r) {
                if (slot_of(r).contributions[half].kind != collective_kind::split) return;
                split_choice& choice = all[static_cast<std::size_t>(r)];
                (void)choice.read({area(r, half), split_choice::bytes});
                users += choice.colour >= 0;
            }
            std::vector<std::vector<int>> const groups = groups_of(all);
            std::size_t b = users == 0 ? most_blocks : 0;
            for (std::uint32_t none = 0;
                 b < most_blocks && !launched().users_[b].compare_exchange_strong(
                                        none, users | under_construction, std::memory_order_acq_rel);
                 none = 0)
                ++b;
            if (b == most_blocks) return;
            std::byte* at = launched().block(b);
            for (std::vector<int> const& each : groups) {
                std::uint64_t const number = launched().groups_made_.fetch_add(1) + 1;
                ::new (at) shared_region(*this, number, each, &each == &groups.back());
                for (int const r : each)
                    slot_of(r).contributions[half].bytes =
                        static_cast<std::size_t>(at - launched().block(0)) + 1;
                at += bytes_for(static_cast<int>(each.size()), sizeof(shared_region));
            }
            launched().users_[b].fetch_and(~under_construction, std::memory_order_acq_rel);
        } catch (std::bad_alloc const&) {
            // Every rank says that there is no memory.
        }
    }

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
            std::size_t const half = at.number & 1;
            if (slot_of(at.rank).contributions[half].kind == collective_kind::split) make_groups(half);
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
            if (has_failed() && !is_complete(at)) throw_failure(at, operation);
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
            if (has_failed() && !is_complete(at)) throw_failure(at, operation);
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
        collective_kind const kind = slot_of(rank).contributions[at.number & 1].kind;
        fail_and_throw(at, failure::make(errc::mismatch, at.rank, rank, operation,
                                         {"rank ", rank, " called ",
                                          kind == collective_kind::split        ? "split"
                                          : kind == collective_kind::all_gather ? "all_gather"
                                                                                : "barrier",
                                          " where rank ", at.rank, " called ", operation,
                                          "; let every rank make the same calls in the same order"}));
    }

    std::uint64_t const job_;                     // 0: of a group, whose ranks derive it
    bool const last_ = true;                      // of a group: no other follows in its block
    std::atomic<std::uint32_t>* users_ = nullptr; // block → backends that use its groups
    std::atomic<std::uint64_t> groups_made_{0};
    std::atomic<std::uint32_t> holders_{1};
    alignas(64) std::atomic<std::uint64_t> arrivals_{0};  // of all ranks at all collectives
    alignas(64) std::atomic<std::uint64_t> completed_{0}; // number of the last collective that is complete
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHARED_REGION_HPP
