// herring: a lock with a condition whose deadlines are on the monotonic clock (POSIX threads).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_MONITOR_HPP
#define HERRING_MACHINE_MONITOR_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <cerrno>
#include <chrono>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail {

/// One lock, and one condition: something that it guards has changed.
class monitor {
  public:
    /// Holds the lock while it lives.
    class guard {
      public:
        explicit guard(monitor& of) noexcept : of_(of) { ::pthread_mutex_lock(&of_.lock_); }
        ~guard() { ::pthread_mutex_unlock(&of_.lock_); }
        guard(guard const&) = delete;
        guard& operator=(guard const&) = delete;

      private:
        monitor& of_;
    };

    monitor() noexcept {
        pthread_condattr_t monotonic;
        ::pthread_condattr_init(&monotonic);
        ::pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        ::pthread_cond_init(&changed_, &monotonic);
        ::pthread_condattr_destroy(&monotonic);
    }
    ~monitor() {
        ::pthread_cond_destroy(&changed_);
        ::pthread_mutex_destroy(&lock_);
    }
    monitor(monitor const&) = delete;
    monitor& operator=(monitor const&) = delete;

    /// Releases the held lock until a notification; may return spuriously. False: `deadline` has passed.
    bool wait_until(std::chrono::steady_clock::time_point deadline) noexcept {
        timespec const until = timespec_of(deadline.time_since_epoch());
        return ::pthread_cond_timedwait(&changed_, &lock_, &until) != ETIMEDOUT;
    }

    void notify_all() noexcept { ::pthread_cond_broadcast(&changed_); }

  private:
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_MONITOR_HPP
