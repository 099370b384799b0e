// herring: the state that a world and its reducers share: lifetime, end, and long waits: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WORLD_STATE_IMPL_HPP
#define HERRING_CONTROL_WORLD_STATE_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/world_state.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <poll.h>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE error ended_world(world_state const& ranks, char const* operation) {
    if (!ranks.owner.is_this()) return ranks.owner.refusal(ranks.info.rank, operation, "world");
    return error(errc::bad_state, ranks.info.rank, -1, operation,
                 "its world has ended: it was destroyed, or assigned, before this reducer; declare the world "
                 "first, and "
                 "let it live as long as its reducers");
}

HERRING_SEPARABLE world_state* world_state::make(membership&& from, world_state* of) {
    control_handle const control = from.control;
    int const rank = from.rank;
    auto* const state = new (std::nothrow) world_state(std::move(from));
    world_family* const family = of != nullptr ? of->family_ : new (std::nothrow) world_family;
    if (state != nullptr && family != nullptr) {
        state->enter(*family);
        control.table->attach(control.self, *state);
        return state;
    }
    if (of == nullptr) delete family;
    delete state;
    control.table->destroy(control.self);
    throw error(errc::no_resources, rank, -1, "world", "no memory for the world's own state");
}

HERRING_SEPARABLE world_state* world_state::none() noexcept {
    alignas(world_state) static std::byte room[sizeof(world_state)];
    static auto* const empty = [] { // never destroyed: worlds may be static
        membership nobody;
        nobody.map = topology(std::vector<int>());
        return ::new (room) world_state(std::move(nobody));
    }();
    return empty;
}

HERRING_SEPARABLE void world_state::enter(world_family& family) noexcept {
    family_ = &family;
    family.states.fetch_add(1, std::memory_order_relaxed);
    monitor::guard const held(family.lock);
    next_ = std::exchange(family.first, this);
}

HERRING_SEPARABLE world_state::~world_state() {
    if (data != nullptr) data->release();
    if (family_ == nullptr) return;
    {
        monitor::guard const held(family_->lock);
        world_state** at = &family_->first;
        while (*at != this) at = &(*at)->next_;
        *at = next_;
    }
    if (family_->states.fetch_sub(1, std::memory_order_acq_rel) == 1) delete family_;
}

HERRING_SEPARABLE void world_state::release() noexcept {
    if (this == none() || holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    // The last messages of this rank may still be in flight to ranks that wait for them.
    time_point const deadline = clock::now() + longest_arrival;
    if (!ended_.load(std::memory_order_acquire)) info.control.table->leave(info.control.self);
    auto const failed = [&] {
        return info.control.board.first_failure->load(std::memory_order_relaxed) != 0;
    };
    for (int ms = 1; data != nullptr && data->close_arrived() && !failed() && clock::now() < deadline;
         ms = std::min(2 * ms, 20))
        (void)::poll(nullptr, 0, ms);
    info.control.table->destroy(info.control.self);
    delete this;
}

HERRING_SEPARABLE void world_state::end() noexcept {
    if (this == none() || holders_.load(std::memory_order_acquire) == 1) return; // `release` leaves the world
    bool in_step = false;
    {
        monitor::guard const held(lock_);
        for (reducer_entry const* r = first_; r != nullptr; r = r->next_) in_step |= r->in_step();
    }
    if (in_step)
        info.control.table->fail(info.control.self,
                                 failure::make(errc::peer_failed, info.rank, info.rank, "world",
                                               "it destroyed its world in the middle of a reducer's step"));
    ended_.store(true, std::memory_order_release);
    info.control.table->leave(info.control.self);
}

HERRING_SEPARABLE listed_wait* world_state::list(blocked_report::entry const& operation) noexcept {
    listed_wait* free = nullptr;
    {
        monitor::guard const held(lock_);
        for (listed_wait& w : waits_)
            if (free == nullptr && !w.used) free = &w;
        if (free == nullptr) return nullptr;
        *free = {operation, clock::now(), true};
    }
    blocked_threads::waiting(1);
    return free;
}

HERRING_SEPARABLE void world_state::unlist(listed_wait& wait) noexcept {
    {
        monitor::guard const held(lock_);
        wait.used = false;
    }
    blocked_threads::waiting(-1);
}

HERRING_SEPARABLE bool world_state::blocked(blocked_report& report) noexcept {
    char const* const call = call_.load(std::memory_order_acquire);
    std::uint64_t const mark = blocked_threads::mark();
    if (call == nullptr && !blocked_threads::are_all(mark)) return false;
    report = {};
    report.waits_of_process = blocked_threads::waits_in(mark);
    bool is_long = false;
    if (call != nullptr || family_ == nullptr) { // a group of such a world has another caller
        if (!add_to(report, call, is_long)) return false;
    } else {
        monitor::guard const held(family_->lock);
        for (world_state* each = family_->first; each != nullptr; each = each->next_)
            if (!each->add_to(report, nullptr, is_long)) return false;
    }
    return is_long && (call != nullptr || blocked_threads::mark() == mark);
}

HERRING_SEPARABLE bool world_state::add_to(blocked_report& report, char const* call, bool& is_long) noexcept {
    monitor::guard const held(lock_);
    time_point const now = clock::now();
    for (listed_wait const& w : waits_) {
        if (!w.used) continue;
        if (report.waits == blocked_report::most_waits) return false;
        report.waiting[report.waits++] = {channel_in(info.number, w.operation.channel), w.operation.number};
        is_long = is_long || now - w.since >= info.times.detector.long_wait;
    }
    if (call != nullptr) { // under the lock the caller cannot end its wait, and so begins nothing
        report.waits_of_process = report.waits;
        report.name_call(call);
    }
    auto const begun = [&](std::uint64_t channel, std::uint64_t number) {
        if (report.channels < blocked_report::most_channels)
            report.begun[report.channels++] = {channel_in(info.number, channel), number};
    };
    begun(0, collectives_.load(std::memory_order_relaxed));
    for (reducer_entry const* r = first_; r != nullptr; r = r->next_)
        begun(r->number_, r->counts_.submitted.load());
    return true;
}

HERRING_SEPARABLE void long_wait::list(time_point now) noexcept {
    due_ = now + ranks_.info.times.detector.long_wait / 2;
    if (listed_ == nullptr || listed_->operation.number != released_) {
        if (listed_ != nullptr) ranks_.unlist(*listed_);
        listed_ = ranks_.list({channel_, released_});
        if (listed_ != nullptr) listed_->since = now - ranks_.info.times.detector.long_wait;
    }
    ranks_.check_deadlock();
}

HERRING_SEPARABLE reducer_entry::reducer_entry(world_state& with, reducer_counts counts) noexcept
    : with_(with), counts_(counts) {
    monitor::guard const held(with_.lock_);
    number_ = ++with_.constructed_;
    next_ = with_.first_;
    if (next_ != nullptr) next_->before_ = this;
    with_.first_ = this;
}
HERRING_SEPARABLE reducer_entry::~reducer_entry() {
    monitor::guard const held(with_.lock_);
    if (next_ != nullptr) next_->before_ = before_;
    (before_ != nullptr ? before_->next_ : with_.first_) = next_;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_WORLD_STATE_IMPL_HPP
