// herring: the set that a frontend sleeps on: descriptors of lanes, a timer of nanoseconds, two events.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_WAIT_SET_HPP
#define HERRING_ENSEMBLE_WAIT_SET_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/poller.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// An epoll set for the thread that drives, and an outer one around it, which an event loop of the program
/// sleeps on: it is readable whenever the inner one is, and when the program has something to fetch.
///
/// Threads: `wait` and `wake` from any; the rest under the frontend's lock. A change of the set also affects
///          a `wait` in progress.
class wait_set {
  public:
    static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();
    static constexpr std::uint64_t wake_key = poller::wake_key, timer_key = wake_key - 1;

    /// Events that a wait found.
    struct found {
        static constexpr int most = 64;
        epoll_event events[most];
        int count = 0;
        std::uint64_t key(int i) const noexcept { return events[i].data.u64; }
    };

    /// Errors: `no_resources`.
    HERRING_SETUP wait_set() {
        inner_.open("frontend");
        shown_.open("frontend", -1);
        outer_ = detail::descriptor(::epoll_create1(EPOLL_CLOEXEC));
        timer_ = detail::descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
        if (outer_.get() < 0 || timer_.get() < 0 || !inner_.watch(timer_.get(), timer_key, EPOLLIN) ||
            !show_outside(inner_.descriptor()) || !show_outside(shown_.descriptor()))
            refuse_to_sleep("frontend", -1);
    }

    /// Descriptor of the outer set: readable when the frontend has something to do or to fetch.
    int descriptor() const noexcept { return outer_.get(); }

    /// Watches `descriptor`, whose events have `key`. False: errno has the reason.
    bool watch(int descriptor, std::uint32_t key) noexcept { return inner_.watch(descriptor, key, EPOLLIN); }
    void rewatch(int descriptor, std::uint32_t key, bool also_writable) noexcept {
        inner_.rewatch(descriptor, key, also_writable ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    void forget(int descriptor) noexcept { inner_.forget(descriptor); }

    /// Makes the set ready at `at`, of the monotonic clock, at the latest; `no_time`: never. Also ends a wait
    /// in progress then.
    ///
    /// Cost:  a timer that goes off earlier stays as it is, because most deadlines are later than the one
    ///        before, and never come.
    void arm(std::int64_t at) noexcept {
        if (at >= armed_) return;
        armed_ = at;
        itimerspec when{};
        when.it_value = timespec_of(std::chrono::nanoseconds(at > 0 ? at : 1));
        (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    }

    /// Waits, without the lock. `timeout_ms` 0: only looks.
    void wait(found& into, int timeout_ms) const noexcept {
        into.count = inner_.wait(into.events, found::most, timeout_ms);
        if (into.count < 0) into.count = 0; // EINTR
    }

    /// Rearms the timer. Called when `timer_key` was found.
    void timer_has_fired() noexcept {
        std::uint64_t times = 0;
        if (::read(timer_.get(), &times, sizeof times) > 0) armed_ = no_time;
    }
    /// Ends a wait in progress.
    void wake() noexcept { inner_.wake(); }
    void woken() noexcept { (void)inner_.woken(); }

    /// Makes the outer set readable, until `fetched`.
    void show() noexcept {
        if (!std::exchange(is_shown_, true)) shown_.raise();
    }
    void fetched() noexcept {
        if (std::exchange(is_shown_, false)) (void)shown_.lower();
    }

  private:
    bool show_outside(int descriptor) noexcept {
        epoll_event event{};
        event.events = EPOLLIN;
        return ::epoll_ctl(outer_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
    }

    poller inner_;
    detail::descriptor outer_, timer_;
    wake_event shown_;
    std::int64_t armed_ = no_time;
    bool is_shown_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_WAIT_SET_HPP
