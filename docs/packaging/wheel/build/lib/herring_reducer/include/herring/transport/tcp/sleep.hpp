// herring: the sleep of transport::tcp: in ppoll with an eventfd, or in an event loop of the program.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_SLEEP_HPP
#define HERRING_TRANSPORT_TCP_SLEEP_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/wake_event.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include <poll.h>

namespace HERRING_NAMESPACE::detail {

/// A sleep on descriptors that another thread can end, by an eventfd.
///
/// Threads: `wake` from any; all else one at a time.
class tcp_waker {
  public:
    /// Opens the eventfd if `needed`: a transport that sleeps in a loop of the program has none.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP tcp_waker(bool needed, int rank) {
        if (needed) event_.open("connect", rank);
    }

    int descriptor() const noexcept { return event_.descriptor(); }

    /// Ends `sleep`, or the next `sleep`.
    void wake() noexcept {
        if (waking_.exchange(true)) return; // a wake-up is pending
        event_.raise();
    }

    /// Sleeps until a descriptor of `polled` has an event, or until `until`. The last of `polled` is
    /// `descriptor()`.
    void sleep(std::span<pollfd> polled, time_point until) noexcept {
        auto const left = until - clock::now();
        if (left <= left.zero()) return;
        timespec const most = timespec_of(left);
        if (::ppoll(polled.data(), polled.size(), &most, nullptr) <= 0 || polled.back().revents == 0) return;
        (void)event_.lower();
        // After the read: writes of a thread that found the flag set are visible when this returns.
        (void)waking_.exchange(false);
    }

  private:
    wake_event event_;
    std::atomic<bool> waking_{false};
};

/// An event loop of the program in which a rank sleeps. It is called through pointers, so that a program
/// without such a loop does not compile its code: to sleep, to wake, when a connection ends, and at the end;
/// never where bytes move.
struct outer_loop {
    /// Adds a descriptor, which the transport owns, at place `at`. Throws `error` of `rank`.
    void (*watch)(outer_loop&, std::size_t at, int descriptor, int rank);
    /// Runs the loop until a descriptor has a wanted event (negative descriptors: none), a handler ran, or
    /// `until`.
    void (*sleep)(outer_loop&, std::span<pollfd const> wanted, time_point until) noexcept;
    /// Ends `sleep`, from any thread.
    void (*wake)(outer_loop&) noexcept;
    /// Removes the descriptor at place `at`, before it is closed.
    void (*forget)(outer_loop&, std::size_t at) noexcept;
    /// Removes everything of the transport from the program's loop, and deletes this object.
    void (*end)(outer_loop*) noexcept;

    std::exception_ptr thrown{}; ///< by a handler of the program; valid if `threw` is set
    std::atomic<bool> threw{false};
};
struct end_of_loop {
    void operator()(outer_loop* loop) const noexcept { loop->end(loop); }
};
using loop_handle = std::unique_ptr<outer_loop, end_of_loop>;

/// Specialised for each kind of loop: `known` is true, and `make(loop, descriptors)` returns a loop_handle.
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
