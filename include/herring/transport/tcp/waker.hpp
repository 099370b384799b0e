// herring: a sleep on sockets that another thread can end.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_WAKER_HPP
#define HERRING_TRANSPORT_TCP_WAKER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/time.hpp"
#include "herring/machine/timespec.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <span>
#include <sys/eventfd.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// An eventfd, the last of the descriptors that `sleep` waits for.
///
/// Threads: `wake` from any; all else one at a time.
class tcp_waker {
  public:
    /// Not `needed`: without a descriptor, for whoever sleeps elsewhere.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP tcp_waker(bool needed, int rank)
        : event_(needed ? ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1) {
        if (needed && event_.get() < 0)
            throw error(errc::no_resources, rank, -1, "connect",
                        {"no descriptor for waking: ", std::strerror(errno),
                         "; raise the limit of open files (ulimit -n)"});
    }

    int descriptor() const noexcept { return event_.get(); }

    /// Ends `sleep`, or the next one.
    void wake() noexcept {
        if (waking_.exchange(true)) return; // a wake-up is pending
        std::uint64_t const one = 1;
        (void)!::write(event_.get(), &one, sizeof one);
    }

    /// Sleeps until one of `polled` has an event or `until`. The last of `polled` is this waker's.
    void sleep(std::span<pollfd> polled, time_point until) noexcept {
        auto const left = until - clock::now();
        if (left <= left.zero()) return;
        timespec const most = timespec_of(left);
        if (::ppoll(polled.data(), polled.size(), &most, nullptr) <= 0 || polled.back().revents == 0) return;
        std::uint64_t count = 0;
        (void)!::read(event_.get(), &count, sizeof count);
        // After the read: what a thread wrote before it found the flag set is seen when this returns.
        (void)waking_.exchange(false);
    }

  private:
    detail::descriptor event_;
    std::atomic<bool> waking_{false};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_WAKER_HPP
