// herring: the failure detector of launched ranks, in memory that all map: failures, wait reports, deadlocks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_SHARED_FAILURES_HPP
#define HERRING_CONTROL_SHARED_SHARED_FAILURES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/shared/failure_watch.hpp"
#include "herring/control/shared/region_layout.hpp"
#include "herring/machine/futex.hpp"
#include "herring/model/failure_detector_options.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Failures of launched ranks. Every rank reads the state that the others show, and finds root causes and
/// deadlocks by itself.
///
/// Threads:  any, of any rank.
class shared_failures : public region_layout {
  public:
    failure_detector_options const& times() const noexcept { return times_; }

    /// The board of the backend of `rank`.
    control_board board(int rank) noexcept {
        return {&first_failure_, failures(), &probe_, &slot_of(rank).waits};
    }

    /// Announces a failure. `by`: a rank, or `ranks()` for the launcher. Each has an entry of its own, so
    /// that a rank killed while it writes leaves the others free to announce.
    void fail(int by, failure const& why) noexcept {
        if (slot_of(by).announced.exchange(1, std::memory_order_acq_rel) != 0) return;
        std::memcpy(static_cast<void*>(&failure_of(by)), &why, sizeof why);
        std::uint32_t none = 0;
        first_failure_.compare_exchange_strong(none, static_cast<std::uint32_t>(by) + 1,
                                               std::memory_order_seq_cst);
        wake_sleepers();
        for (int r = 0; r < ranks_; ++r)
            if (news_of(r).wanted()) news_of(r).notify();
    }
    failure_news news_of(int rank) noexcept {
        return {slot_of(rank).news, first_failure_, failures(), processes_};
    }

    /// Notes that `rank` takes no further part, and wakes the ranks that wait for it; once.
    void leave(int rank) noexcept {
        if (slot_of(rank).left.exchange(1, std::memory_order_acq_rel) != 0) return;
        left_.fetch_add(1, std::memory_order_seq_cst);
        wake_sleepers();
    }

    /// Notes that the launcher has seen the process of `rank` stopped, or going on.
    void stopped(int rank, bool is) noexcept {
        slot_of(rank).stopped.store(is ? 1 : 0, std::memory_order_release);
    }

    /// Looks once at the replies to the suspicion's probe, which starts now if there is none yet. Announces
    /// the root cause as soon as the replies show it.
    void report_suspicion(int by, suspicion_report& of) noexcept {
        look_for_root_cause(by, of, std::span<int const>(&of.why.peer, 1));
    }

  protected:
    /// `launched`: the region of the launched world; nullptr: this one is. `number`: of a group, from 1.
    shared_failures(int ranks, std::size_t head_bytes, bool processes, failure_detector_options const& times,
                    shared_failures* launched = nullptr, std::uint64_t number = 0) noexcept
        : region_layout(ranks, head_bytes), processes_(processes),
          launched_(launched != nullptr ? *launched : *this), number_(number), times_(times) {}

    /// The number here of a rank of the launched world; −1: it is not in this world.
    int rank_of(int launched) noexcept {
        int r = ranks_ - 1;
        while (r >= 0 && launched_rank(r) != launched) --r;
        return r;
    }

    bool has_failed() const noexcept { return first_failure_.load(std::memory_order_seq_cst) != 0; }
    bool has_left(int rank) noexcept { return slot_of(rank).left.load(std::memory_order_acquire) != 0; }
    bool anyone_left() const noexcept { return left_.load(std::memory_order_seq_cst) != 0; }

    /// `suspects`: the ranks that may be the root cause, or wait for it.
    void look_for_root_cause(int by, suspicion_report& of, std::span<int const> suspects) noexcept {
        if (has_failed()) return;
        if (of.probe == 0) of.probe = probe_.fetch_add(1, std::memory_order_seq_cst) + 1;
        if (of.certain || of.why.peer < 0 || of.why.peer >= ranks_) {
            // The launcher, which looks twice a heartbeat, may be about to tell how a process ended. Threads
            // have no launcher.
            if (!processes_ || of.waited >= times_.heartbeat) fail(by, of.why);
            return;
        }
        root_cause const found = find_root_cause(by, suspects, ranks_, [&](int r) noexcept {
            if (has_left(r)) return wait_report{rank_state::left, -1};
            slot const& shown = slot_of(r);
            if (launched_.slot_of(launched_rank(r)).stopped.load(std::memory_order_acquire) != 0)
                return wait_report{rank_state::stopped, -1};
            wait_report reply = wait_report::read(shown.waits.load(std::memory_order_acquire), of.probe);
            if (reply.state == rank_state::unknown && of.waited >= times_.reply_timeout)
                reply.state = rank_state::silent;
            return reply;
        });
        if (found.reached()) fail(by, describe(of.why, found));
    }

    // A sleeper reads `wakes()`, looks whether it may go on, and sleeps unless the number has changed.
    std::uint32_t wakes() const noexcept { return wakes_.load(std::memory_order_seq_cst); }
    void sleep(std::uint32_t wakes, clock::duration most) noexcept {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        futex_wait(wakes_, wakes, most, processes_);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
    void wake_sleepers() noexcept {
        wakes_.fetch_add(1, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
        futex_wake(wakes_, processes_);
    }

    bool const processes_;      // false: threads of one
    shared_failures& launched_; // every process maps it at the same address
    std::uint64_t const number_;

  private:
    failure_detector_options const times_;
    alignas(64) std::atomic<std::uint32_t> first_failure_{0};
    std::atomic<std::uint32_t> probe_{0}; // read as often as the first failure, and as seldom written
    alignas(64) std::atomic<std::uint32_t> wakes_{0};
    std::atomic<std::uint32_t> sleepers_{0};
    std::atomic<std::uint32_t> left_{0};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHARED_FAILURES_HPP
