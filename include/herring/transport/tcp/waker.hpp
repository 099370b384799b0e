// herring: a sleep on sockets that another thread can end.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_WAKER_HPP
#define HERRING_TRANSPORT_TCP_WAKER_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/wake_event.hpp"

#include <atomic>
#include <poll.h>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// An eventfd, the last of the descriptors that `sleep` waits for.
///
/// Threads: `wake` from any; all else one at a time.
class tcp_waker {
  public:
    /// Not `needed`: without a descriptor, for whoever sleeps elsewhere.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP tcp_waker(bool needed, int rank) {
        if (needed) event_.open("connect", rank);
    }

    int descriptor() const noexcept { return event_.descriptor(); }

    /// Ends `sleep`, or the next one.
    void wake() noexcept {
        if (waking_.exchange(true)) return; // a wake-up is pending
        event_.raise();
    }

    /// Sleeps until one of `polled` has an event or `until`. The last of `polled` is this waker's.
    void sleep(std::span<pollfd> polled, time_point until) noexcept {
        auto const left = until - clock::now();
        if (left <= left.zero()) return;
        timespec const most = timespec_of(left);
        if (::ppoll(polled.data(), polled.size(), &most, nullptr) <= 0 || polled.back().revents == 0) return;
        (void)event_.lower();
        // After the read: what a thread wrote before it found the flag set is seen when this returns.
        (void)waking_.exchange(false);
    }

  private:
    wake_event event_;
    std::atomic<bool> waking_{false};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_WAKER_HPP
