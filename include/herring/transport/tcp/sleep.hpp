// herring: an event loop of the program, in which a rank sleeps in place of a system call of its own.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_SLEEP_HPP
#define HERRING_TRANSPORT_TCP_SLEEP_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"
#include "herring/machine/timespec.hpp"
#include "herring/net/wake_event.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include <poll.h>

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

/// What a transport asks of the loop, by pointers to functions: a program without such a loop does not compile its code.
/// They are called to sleep, to wake, when a connection is lost and at the end, never where bytes move.
struct outer_loop {
    /// The loop may wait for this descriptor, which stays the transport's. Throws `error` of `rank`.
    void (*watch)(outer_loop&, std::size_t at, int descriptor, int rank);
    /// Runs the loop until a descriptor has a wanted event (negative descriptors: none), or until another handler ran.
    void (*sleep)(outer_loop&, std::span<pollfd const> wanted, time_point until) noexcept;
    /// Ends `sleep`, from any thread.
    void (*wake)(outer_loop&) noexcept;
    /// Called before the descriptor is closed.
    void (*forget)(outer_loop&, std::size_t at) noexcept;
    /// Removes all that refers to the transport, and deletes this object; the program's loop stays.
    void (*end)(outer_loop*) noexcept;

    std::exception_ptr thrown{}; ///< by a handler of the program; valid when `threw` is set
    std::atomic<bool> threw{false};
};
struct end_of_loop {
    void operator()(outer_loop* loop) const noexcept { loop->end(loop); }
};
using loop_handle = std::unique_ptr<outer_loop, end_of_loop>;

/// Specialised by the header of each kind of loop: `known` is true, and `make(loop, descriptors)` returns a loop_handle.
template <class Loop> struct outer_loop_in { static constexpr bool known = false; };
template <class Loop> loop_handle outer_loop_of(Loop& loop, std::size_t descriptors) {
    using kind = outer_loop_in<Loop>;
    static_assert(
        kind::known,
        "[HRG-T13] transport: what tcp's constructor takes is a boost::asio::io_context; a common slip is "
        "to include herring/transport/tcp.hpp alone; include herring/transport/tcp_asio.hpp");
    if constexpr (kind::known)
        return kind::make(loop, descriptors);
    else
        return nullptr;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_SLEEP_HPP
