// herring: what a frontend sleeps on: its lanes' descriptors, a timer of nanoseconds, and two events of its own.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_WAIT_SET_HPP
#define HERRING_ENSEMBLE_WAIT_SET_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/timespec.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// One epoll set for the thread that drives, and around it a second one, which an event loop of the program's sleeps on: it is
/// readable whenever the inner one is, and when there is something to fetch for the program.
///
/// Threads: `wait` and `wake` from any; the rest under the frontend's lock. A change of the set holds for a `wait` that
///          is under way, too.
class wait_set {
  public:
    static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();
    static constexpr std::uint32_t timer_key = ~std::uint32_t{0}, wake_key = timer_key - 1;

    /// What a wait found.
    struct found {
        static constexpr int most = 64;
        epoll_event events[most];
        int count = 0;
        std::uint32_t key(int i) const noexcept { return events[i].data.u32; }
    };

    /// Errors: `no_resources`.
    HERRING_SETUP wait_set()
        : inner_(::epoll_create1(EPOLL_CLOEXEC)), outer_(::epoll_create1(EPOLL_CLOEXEC)),
          timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
          wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), shown_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (inner_.get() < 0 || outer_.get() < 0 || timer_.get() < 0 || wake_.get() < 0 || shown_.get() < 0 ||
            !watch(timer_.get(), timer_key) || !watch(wake_.get(), wake_key) ||
            !control(outer_.get(), EPOLL_CTL_ADD, inner_.get(), 0, EPOLLIN) ||
            !control(outer_.get(), EPOLL_CTL_ADD, shown_.get(), 0, EPOLLIN))
            throw error(errc::no_resources, -1, -1, "frontend",
                        {"no descriptors to sleep on: ", std::strerror(errno), "; raise ulimit -n"});
    }

    /// Of the outer set: readable when the frontend has something to do or to fetch.
    int descriptor() const noexcept { return outer_.get(); }

    /// `key` comes with each event of `descriptor`. False: errno.
    bool watch(int descriptor, std::uint32_t key) noexcept {
        return control(inner_.get(), EPOLL_CTL_ADD, descriptor, key, EPOLLIN);
    }
    void rewatch(int descriptor, std::uint32_t key, bool also_writable) noexcept {
        (void)control(inner_.get(), EPOLL_CTL_MOD, descriptor, key,
                      also_writable ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    void forget(int descriptor) noexcept {
        (void)::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    }

    /// The set is ready at `at`, of the monotonic clock, at the latest; `no_time`: need not be. A wait that is under way ends then,
    /// too.
    ///
    /// Cost:  a timer that goes off earlier stays as it is: most deadlines are later than the one before, and never come.
    void arm(std::int64_t at) noexcept {
        if (at >= armed_) return;
        armed_ = at;
        itimerspec when{};
        when.it_value = timespec_of(std::chrono::nanoseconds(at > 0 ? at : 1));
        (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    }

    /// Without the lock. `timeout_ms` 0: only looks.
    void wait(found& into, int timeout_ms) const noexcept {
        into.count = ::epoll_wait(inner_.get(), into.events, found::most, timeout_ms);
        if (into.count < 0) into.count = 0; // EINTR
    }

    /// After `timer_key` was found.
    void timer_has_fired() noexcept {
        std::uint64_t times = 0;
        if (::read(timer_.get(), &times, sizeof times) > 0) armed_ = no_time;
    }
    /// Ends a wait.
    void wake() noexcept { raise(wake_.get()); }
    void woken() noexcept { lower(wake_.get()); }

    /// Makes the outer set readable, until `fetched`.
    void show() noexcept {
        if (!std::exchange(is_shown_, true)) raise(shown_.get());
    }
    void fetched() noexcept {
        if (std::exchange(is_shown_, false)) lower(shown_.get());
    }

  private:
    static bool control(int set, int how, int descriptor, std::uint32_t key, std::uint32_t what) noexcept {
        epoll_event event{};
        event.events = what;
        event.data.u32 = key;
        return ::epoll_ctl(set, how, descriptor, &event) == 0;
    }
    static void raise(int event) noexcept {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(event, &one, sizeof one);
    }
    static void lower(int event) noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] auto const got = ::read(event, &count, sizeof count);
    }

    detail::descriptor inner_, outer_, timer_, wake_, shown_;
    std::int64_t armed_ = no_time;
    bool is_shown_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_WAIT_SET_HPP
