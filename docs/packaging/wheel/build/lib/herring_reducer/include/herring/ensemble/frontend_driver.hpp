// herring: the threads that wait for answers, and their lock: one thread drives the engine, the others sleep.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_DRIVER_HPP
#define HERRING_ENSEMBLE_FRONTEND_DRIVER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/frontend_state.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/wait_set.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/futex.hpp"
#include "herring/waiting/waiting.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <pthread.h>
#include <sched.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A mutex for holds of microseconds. A thread that wants it spins briefly before it sleeps, and is counted,
/// so that a thread that polls under the lock sees that it must let others in.
class frontend_lock {
  public:
    frontend_lock() = default;
    frontend_lock(frontend_lock const&) = delete;
    frontend_lock& operator=(frontend_lock const&) = delete;
    ~frontend_lock() { ::pthread_mutex_destroy(&mutex_); }

    /// Locks. In a forked child, where a thread of the parent may hold the mutex for ever, it does nothing.
    void lock() noexcept {
        if (!owner_.is_this()) [[unlikely]]
            return;
        if (::pthread_mutex_trylock(&mutex_) == 0) return;
        wanted_.fetch_add(1, std::memory_order_relaxed);
        take();
        wanted_.fetch_sub(1, std::memory_order_relaxed);
    }
    void unlock() noexcept {
        if (owner_.is_this()) [[likely]]
            ::pthread_mutex_unlock(&mutex_);
    }
    owner_process const& owner() const noexcept { return owner_; }

    bool is_wanted() const noexcept { return wanted_.load(std::memory_order_relaxed) != 0; }

    /// Lets waiting threads have the lock, then takes it again; requires the lock. A thread that sleeps gets
    /// it once it is awake, and is waited for during at most `rounds` yields.
    void let_others_in() noexcept {
        unlock();
        for (int rounds = 64; is_wanted() && rounds > 0; --rounds) ::sched_yield();
        lock();
    }

    /// Holds the lock while it lives.
    class guard {
      public:
        explicit guard(frontend_lock& of) noexcept : of_(of) { of_.lock(); }
        ~guard() { of_.unlock(); }
        guard(guard const&) = delete;
        guard& operator=(guard const&) = delete;

      private:
        frontend_lock& of_;
    };

  private:
    void take() noexcept {
        for (int tries = 0; tries < 100; ++tries) {
            cpu_pause();
            if (::pthread_mutex_trylock(&mutex_) == 0) return;
        }
        ::pthread_mutex_lock(&mutex_);
    }

    owner_process owner_{};
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<std::uint32_t> wanted_{0};
};

/// Threads that wait for answers. The first one drives: it polls lanes and rules, or sleeps on all of them,
/// until its request is decided. The others sleep on their own requests, and one of them takes over.
///
/// Threads:  any; every call holds the engine's lock, and releases it while it waits.
/// Lifetime: no longer than the engine.
template <class Waiting, class Engine> class frontend_driver {
  public:
    explicit frontend_driver(Engine& engine) noexcept : engine_(engine) {}
    frontend_driver(frontend_driver const&) = delete;
    frontend_driver& operator=(frontend_driver const&) = delete;

    /// The number of threads that wait for an answer.
    std::size_t inside() const noexcept { return inside_; }

    /// Returns when the request is decided.
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
        // Also where another thread drove: this one may have been called to drive, and leaves.
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
    // Calls one waiting thread to drive, or leaves the lanes to a loop of the program. No thread drives.
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
            (void)engine_.turn(engine_.now_ns(), true); // the driving thread is late: it has no core
    }

    static constexpr int longest_sleep_ms = 1000;
    static constexpr std::int64_t overtime_ns = 1'000'000;

    Engine& engine_;
    request_list waiting_;
    std::size_t inside_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_DRIVER_HPP
