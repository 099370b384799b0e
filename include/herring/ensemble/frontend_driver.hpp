// herring: the threads that wait for answers: one of them drives the engine for all, the others sleep on their own request.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_DRIVER_HPP
#define HERRING_ENSEMBLE_FRONTEND_DRIVER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/requests_in_flight.hpp"
#include "herring/ensemble/wait_set.hpp"
#include "herring/machine/futex.hpp"
#include "herring/waiting/waiting.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <sched.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The first who asks polls lanes and rules, or sleeps on all of them, until his request is decided; the others sleep on their
/// own requests, and one of them takes over.
///
/// Threads:  any; every call holds the engine's lock, which is let go of while it waits.
/// Lifetime: no longer than the engine.
template <class Waiting, class Engine> class frontend_driver {
  public:
    explicit frontend_driver(Engine& engine) noexcept : engine_(engine) {}
    frontend_driver(frontend_driver const&) = delete;
    frontend_driver& operator=(frontend_driver const&) = delete;

    /// Threads that wait for an answer.
    std::size_t inside() const noexcept { return inside_; }

    /// Until the request is decided.
    void await(slot_index at) noexcept {
        in_flight& r = engine_.slots[at];
        ++inside_;
        while (!r.decided) {
            if (engine_.driving)
                follow(r, at);
            else
                drive(r, at);
        }
        --inside_;
        // Also where another one drove: this thread may have been called to drive, and leaves.
        if (!engine_.driving) hand_over();
    }

  private:
    void drive(in_flight& r, slot_index at) noexcept {
        engine_.driving = true;
        engine_.driver = at;
        Waiting const waiting{};
        std::uint32_t rounds = 0;
        std::int64_t idle_since = engine_.now_ns();
        for (;;) {
            std::int64_t const now = engine_.now_ns();
            wait_action const action = waiting.next(rounds, now - idle_since, cores_are_shared);
            bool const looks = engine_.links.any_sockets() || (rounds & 15) == 15;
            bool const any = engine_.turn(now, looks && action != wait_action::sleep,
                                          Engine::caller::driver); // a sleep looks by itself
            if (r.decided) break;
            if (any) {
                rounds = 0;
                idle_since = now;
                if (engine_.lock.is_wanted()) engine_.lock.let_others_in();
                continue;
            }
            ++rounds;
            if (action == wait_action::sleep) {
                sleep();
                if (r.decided) break;
                rounds = 0;
                idle_since = engine_.now_ns();
            } else {
                if (engine_.lock.is_wanted()) {
                    engine_.lock.let_others_in();
                    continue;
                }
                engine_.lock.unlock();
                if (action == wait_action::yield)
                    ::sched_yield();
                else if (action == wait_action::pause)
                    cpu_pause();
                engine_.lock.lock();
            }
        }
        engine_.driving = false;
    }
    // Nobody drives: one of those who wait is called to, or a loop of the program's waits.
    void hand_over() noexcept {
        if (!waiting_.empty())
            engine_.call(engine_.slots[waiting_.first()]);
        else
            engine_.settle();
    }
    void sleep() noexcept {
        if (!engine_.links.announce_sleep()) return;
        engine_.ready.arm(engine_.table.next_event());
        engine_.sleeping = true;
        engine_.lock.unlock();
        wait_set::found found;
        engine_.ready.wait(found, longest_sleep_ms);
        engine_.lock.lock();
        engine_.sleeping = false;
        engine_.links.awake();
        engine_.take_found(found, engine_.now_ns());
    }
    // Waits until the request is decided, or this thread is to drive.
    void follow(in_flight& r, slot_index at) noexcept {
        r.word.store(in_flight::asleep, std::memory_order_relaxed);
        r.waits = true;
        waiting_.append(engine_.slots.records(), at);
        std::int64_t const until = r.deadline + overtime_ns;
        engine_.lock.unlock();
        Waiting const waiting{};
        std::int64_t const begin = engine_.now_ns();
        std::uint32_t rounds = 0;
        bool called = false;
        for (;;) {
            called = r.word.load(std::memory_order_acquire) == in_flight::called;
            std::int64_t const now = engine_.now_ns();
            if (called || now >= until) break;
            wait_action const action = waiting.next(rounds++, now - begin, cores_are_shared);
            if (action == wait_action::sleep)
                futex_wait(r.word, in_flight::asleep, std::chrono::nanoseconds(until - now), false);
            else if (action == wait_action::yield)
                ::sched_yield();
            else if (action == wait_action::pause)
                cpu_pause();
        }
        engine_.lock.lock();
        waiting_.remove(engine_.slots.records(), at);
        r.waits = false;
        if (!called && !r.decided)
            (void)engine_.turn(engine_.now_ns(), true); // who drives is late: has no core
    }

    static constexpr int longest_sleep_ms = 1000;
    static constexpr std::int64_t overtime_ns = 1'000'000;

    Engine& engine_;
    request_list waiting_;
    std::size_t inside_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_DRIVER_HPP
