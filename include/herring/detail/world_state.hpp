// herring: what a world and the reducers made from it share; it stays where it is when the world is moved.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_WORLD_STATE_HPP
#define HERRING_DETAIL_WORLD_STATE_HPP

#include "herring/detail/config.hpp"
#include "herring/detail/control.hpp"
#include "herring/detail/failure_handler.hpp"
#include "herring/detail/identity.hpp"
#include "herring/detail/liveness.hpp"
#include "herring/detail/monitor.hpp"
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

  private:
    friend class world_state;

    bool in_step() const noexcept {
        return counts_.ready > 0 || counts_.submitted.load() != counts_.released.load();
    }

    world_state& with_;
    reducer_counts counts_;
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
        auto* const made = new (std::nothrow) world_state(std::move(from));
        if (made != nullptr) return made;
        if (from.by.destroy != nullptr) from.by.destroy(from.by.self);
        throw error(errc::no_resources, from.rank, -1, "world", "no memory for the world's own state");
    }
    /// What a world that was moved from has: no control, a map of no ranks.
    HERRING_SETUP static world_state* none() noexcept {
        static world_state& empty = *new world_state(membership{}); // never destroyed: worlds may be static
        return &empty;
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

  private:
    friend class registration;

    explicit world_state(membership&& from) noexcept : is(std::move(from)) {}
    ~world_state() = default;

    std::atomic<int> holders_{1};
    std::atomic<bool> ended_{false};
    monitor lock_; // for what follows
    registration* first_ = nullptr;
};

HERRING_SETUP inline registration::registration(world_state& with, reducer_counts counts) noexcept
    : with_(with), counts_(counts) {
    monitor::guard const held(with_.lock_);
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
