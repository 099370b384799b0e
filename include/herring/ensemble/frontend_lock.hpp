// herring: the lock of a frontend, which who spins gives to who asks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_LOCK_HPP
#define HERRING_ENSEMBLE_FRONTEND_LOCK_HPP

#include "herring/base/config.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/futex.hpp"

#include <atomic>
#include <cstdint>

#include <pthread.h>
#include <sched.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A mutex for holds of microseconds: who wants it tries for a moment before it sleeps, and is counted, so that a thread
/// which polls under the lock sees that it has to let others in.
class frontend_lock {
  public:
    frontend_lock() = default;
    frontend_lock(frontend_lock const&) = delete;
    frontend_lock& operator=(frontend_lock const&) = delete;
    ~frontend_lock() { ::pthread_mutex_destroy(&mutex_); }

    /// In a forked child, where a thread of the parent may have held it for ever, it locks nothing.
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

    /// With the lock held: gives it to those who want it, then takes it again. One that sleeps gets it once it is awake; it is
    /// not waited for longer than `rounds` of yields.
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

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_LOCK_HPP
