// herring: what a world and the reducers made from it share; it stays where it is when the world is moved.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_WORLD_STATE_HPP
#define HERRING_DETAIL_WORLD_STATE_HPP

#include "herring/detail/blocked_threads.hpp"
#include "herring/detail/config.hpp"
#include "herring/detail/control.hpp"
#include "herring/detail/failure_handler.hpp"
#include "herring/detail/identity.hpp"
#include "herring/detail/liveness.hpp"
#include "herring/detail/monitor.hpp"
#include "herring/detail/standstill.hpp"
#include "herring/detail/table.hpp"
#include "herring/error.hpp"
#include "herring/gathered.hpp"
#include "herring/plan/topology.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// What a backend (join, launch) hands to a world; all but the rank and the address are the same on every
/// rank.
struct membership {
    int rank = 0;
    topology map{};
    std::uint64_t job = 0;
    std::string local_address = "127.0.0.1";
    int ranks_on_this_machine = 1;
    std::chrono::milliseconds peer_timeout = liveness{}.dead;
    std::chrono::milliseconds default_timeout = usual_timeout;
    control by{};
};

/// The control of a world of one.
struct control_alone {
    std::atomic<std::uint32_t> claimed{0};
    std::atomic<std::uint32_t> first{0};
    failure cell{};
    failure_handler on_failure{};

    HERRING_SETUP static control make(failure_handler const& called = {}) {
        auto* const made = new control_alone;
        made->on_failure = called;
        control by;
        by.self = made;
        by.first_failure = &made->first;
        by.failures = &made->cell;
        by.all_gather = all_gather;
        by.barrier = barrier;
        by.fail = fail;
        by.destroy = destroy;
        return by;
    }

    static gathered all_gather(void* self, std::string_view, std::span<std::byte const> mine, time_point) {
        check(self);
        table<std::size_t> size(1);
        size[0] = mine.size();
        gathered all(std::move(size));
        if (!mine.empty()) std::memcpy(all[0].data(), mine.data(), mine.size());
        return all;
    }
    static void barrier(void* self, std::string_view, time_point) { check(self); }
    static void fail(void* self, failure const& why) noexcept {
        auto& alone = *static_cast<control_alone*>(self);
        if (alone.claimed.exchange(1) != 0) return;
        alone.cell = why;
        alone.first.store(1, std::memory_order_release);
        alone.on_failure(why);
    }
    static void destroy(void* self) noexcept { delete static_cast<control_alone*>(self); }

    static void check(void* self) {
        auto& alone = *static_cast<control_alone*>(self);
        if (alone.first.load(std::memory_order_acquire) != 0) throw error(as_seen_by(alone.cell, 0));
    }
};

/// Asks a world for the handle of a reducer.
struct for_reducer {};

HERRING_SETUP inline error ended_world(int rank, char const* operation) {
    return error(errc::bad_state, rank, -1, operation,
                 "its world has ended: it was destroyed, or assigned, before this reducer; declare the world "
                 "first, and "
                 "let it live as long as its reducers");
}

class world_state;

/// A thread that waits in a call: not before the operation is complete will it do anything else.
struct listed_wait {
    wait_report::entry operation{};
    time_point since{};
    bool used = false;
};

/// Where a reducer counts.
struct reducer_counts {
    std::atomic<std::uint64_t> const& submitted; ///< executions
    std::atomic<std::uint64_t> const& released;
    std::size_t const& ready; ///< tensors that are ready in the step under way
};

/// A reducer, as its world knows it, as long as it lives.
///
/// Threads:  the counts are read by whichever thread destroys the world.
class registration {
  public:
    registration(world_state& with, reducer_counts counts) noexcept;
    ~registration();
    registration(registration const&) = delete;
    registration& operator=(registration const&) = delete;

    /// 1 for the world's first reducer: the same on every rank.
    std::uint64_t number() const noexcept { return number_; }

  private:
    friend class world_state;

    bool in_step() const noexcept {
        return counts_.ready > 0 || counts_.submitted.load() != counts_.released.load();
    }

    world_state& with_;
    reducer_counts counts_;
    std::uint64_t number_ = 0;
    registration* next_ = nullptr;
    registration* before_ = nullptr;
};

/// On the heap, held by the world and by each of its reducers; the last holder frees it, and the control with it.
///
/// When the world is destroyed or assigned before its reducers, the rank leaves at that time, the reducers refuse every
/// later call (`ended`), and what the control reads and writes stays valid until the last of them is gone.
class world_state {
  public:
    membership is;

    /// Held once. Takes the control over, whatever happens. Errors: `no_resources`.
    HERRING_SETUP static world_state* make(membership&& from) {
        control const by = from.by;
        int const rank = from.rank;
        auto* const made = new (std::nothrow) world_state(std::move(from));
        if (made != nullptr) {
            if (made->is.by.attend != nullptr) made->is.by.attend(made->is.by.self, *made);
            return made;
        }
        if (by.destroy != nullptr) by.destroy(by.self);
        throw error(errc::no_resources, rank, -1, "world", "no memory for the world's own state");
    }
    /// What a world that was moved from has: no control, a map of no ranks.
    HERRING_SETUP static world_state* none() noexcept {
        alignas(world_state) static std::byte room[sizeof(world_state)];
        static auto* const empty =
            ::new (room) world_state(membership{}); // never destroyed: worlds may be static
        return empty;
    }

    void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
    HERRING_SETUP void release() noexcept {
        if (this == none() || holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        if (is.by.destroy != nullptr) is.by.destroy(is.by.self);
        delete this;
    }

    /// The world is gone, and its reducers may not be.
    HERRING_SETUP void end() noexcept {
        if (this == none() || holders_.load(std::memory_order_acquire) == 1) return; // `release` says goodbye
        bool in_step = false;
        {
            monitor::guard const held(lock_);
            for (registration const* r = first_; r != nullptr; r = r->next_) in_step |= r->in_step();
        }
        if (in_step && is.by.fail != nullptr)
            is.by.fail(is.by.self, failure::make(errc::peer_failed, is.rank, is.rank, "world",
                                                 "it destroyed its world in the middle of a reducer's step"));
        ended_.store(true, std::memory_order_release);
        if (is.by.leave != nullptr) is.by.leave(is.by.self);
    }
    bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }

    // ---- waits that last (detail/standstill.hpp) --------------------------------------------------------------------

    static constexpr std::chrono::milliseconds long_wait{1'000};

    /// The calling thread waits for this operation from now on. Returns nullptr when there is no room: then nothing can be
    /// proven of this rank.
    HERRING_SETUP listed_wait* list(wait_report::entry const& operation) noexcept {
        listed_wait* made = nullptr;
        {
            monitor::guard const held(lock_);
            for (listed_wait& w : waits_)
                if (made == nullptr && !w.used) made = &w;
            if (made == nullptr) return nullptr;
            *made = {operation, clock::now(), true};
        }
        blocked_threads::waiting(1);
        return made;
    }
    HERRING_SETUP void unlist(listed_wait& wait) noexcept {
        {
            monitor::guard const held(lock_);
            wait.used = false;
        }
        blocked_threads::waiting(-1);
    }
    /// The calling thread enters the world's next collective. Returns its number.
    std::uint64_t enter_collective() noexcept { return collectives_.fetch_add(1, std::memory_order_relaxed); }

    /// Where this rank stands; false when it can do something yet, or does not wait for long.
    // Threads first, then what they have begun, then threads again: in between none of them can have run.
    HERRING_SETUP bool stands(wait_report& report) noexcept {
        std::uint64_t const mark = blocked_threads::mark();
        if (!blocked_threads::are_all(mark)) return false;
        report = {};
        report.waits_of_process = blocked_threads::waits_in(mark);
        {
            monitor::guard const held(lock_);
            time_point const now = clock::now();
            bool is_long = false;
            for (listed_wait const& w : waits_) {
                if (!w.used) continue;
                report.waiting[report.waits++] = w.operation;
                is_long = is_long || now - w.since >= long_wait;
            }
            if (!is_long) return false;
            report.begun[report.channels++] = {0, collectives_.load(std::memory_order_relaxed)};
            for (registration const* r = first_; r != nullptr; r = r->next_)
                if (report.channels < wait_report::most_channels)
                    report.begun[report.channels++] = {r->number_, r->counts_.submitted.load()};
        }
        return blocked_threads::mark() == mark;
    }
    /// Tells the other ranks, where no thread of Herring's does; the world fails if they prove a standstill.
    HERRING_SETUP void tell_where_it_stands() noexcept {
        wait_report report;
        if (is.by.stands != nullptr && stands(report)) is.by.stands(is.by.self, report);
    }

  private:
    friend class registration;

    explicit world_state(membership&& from) noexcept : is(std::move(from)) {}
    ~world_state() = default;

    std::atomic<int> holders_{1};
    std::atomic<bool> ended_{false};
    monitor lock_; // for what follows
    registration* first_ = nullptr;
    std::uint64_t constructed_ = 0;
    listed_wait waits_[wait_report::most_waits];
    std::atomic<std::uint64_t> collectives_{0}; // entered
};

/// One thread's wait for a reducer's execution, which becomes a listed one when nothing has moved for long.
///
/// Cost:     a comparison a look, until then.
class long_wait {
  public:
    /// `channel` 0: never listed.
    long_wait(world_state& ranks, std::uint64_t channel) noexcept : ranks_(ranks), channel_(channel) {}
    ~long_wait() {
        if (listed_ != nullptr) ranks_.unlist(*listed_);
    }
    long_wait(long_wait const&) = delete;
    long_wait& operator=(long_wait const&) = delete;

    /// To be called now and then: at `now`, so many executions are released.
    void look(time_point now, std::uint64_t released) noexcept {
        if (due_ == time_point{} || released != released_) {
            released_ = released;
            due_ = now + world_state::long_wait;
        } else if (now >= due_ && channel_ != 0) {
            list(now);
        }
    }

  private:
    // A wait that is listed for an execution that is complete meanwhile proves nothing, so it may stay until the next look.
    HERRING_SETUP void list(time_point now) noexcept {
        due_ = now + world_state::long_wait / 2;
        if (listed_ == nullptr || listed_->operation.number != released_) {
            if (listed_ != nullptr) ranks_.unlist(*listed_);
            listed_ = ranks_.list({channel_, released_});
            if (listed_ != nullptr) listed_->since = now - world_state::long_wait;
        }
        ranks_.tell_where_it_stands();
    }

    world_state& ranks_;
    std::uint64_t channel_;
    std::uint64_t released_ = 0;
    time_point due_{};
    listed_wait* listed_ = nullptr;
};

/// The calling thread's wait in a collective of the world.
class collective_wait {
  public:
    explicit collective_wait(world_state& ranks) noexcept
        : ranks_(ranks), listed_(ranks.list({0, ranks.enter_collective()})) {}
    ~collective_wait() {
        if (listed_ != nullptr) ranks_.unlist(*listed_);
    }
    collective_wait(collective_wait const&) = delete;
    collective_wait& operator=(collective_wait const&) = delete;

  private:
    world_state& ranks_;
    listed_wait* listed_;
};

HERRING_SETUP inline registration::registration(world_state& with, reducer_counts counts) noexcept
    : with_(with), counts_(counts) {
    monitor::guard const held(with_.lock_);
    number_ = ++with_.constructed_;
    next_ = with_.first_;
    if (next_ != nullptr) next_->before_ = this;
    with_.first_ = this;
}
HERRING_SETUP inline registration::~registration() {
    monitor::guard const held(with_.lock_);
    if (next_ != nullptr) next_->before_ = before_;
    (before_ != nullptr ? before_->next_ : with_.first_) = next_;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_DETAIL_WORLD_STATE_HPP
