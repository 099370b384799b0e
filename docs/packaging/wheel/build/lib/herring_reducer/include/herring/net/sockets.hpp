// herring: TCP sockets of listeners and diallers: accepting, connecting, patience. Never blocks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_SOCKETS_HPP
#define HERRING_NET_SOCKETS_HPP

#include "herring/base/config.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail {

/// Returns the next connection that waits at a listener, non-blocking; −1 and errno without.
HERRING_SETUP inline descriptor accept_next(int listener, endpoint& from) noexcept {
    for (;;) {
        from.size = sizeof from.raw;
        descriptor next(
            forks::own(::accept4(listener, from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC)));
        if (next.get() >= 0 || (errno != EINTR && errno != ECONNABORTED)) return next;
    }
}

/// True if an error of `accept` or `socket` is that the process, or the machine, can have no more sockets.
/// The listener stays readable then.
constexpr bool out_of_sockets(int why) noexcept {
    return why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
}

/// Sets up a control connection: no delay for small messages; a host that has vanished is noticed after about
/// `patience`, also when idle. A lost packet is sent again at most a second later, however long the network
/// was away.
HERRING_SETUP inline void tune(int socket, std::chrono::milliseconds patience) noexcept {
    auto const set = [&](int level, int option, int value) {
        ::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, patience < never ? 1 : 0);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    // Without these the gaps between retransmissions double: after an outage of 4 s the next is due at 6 s.
    constexpr int rto_max_ms = 44; // TCP_RTO_MAX_MS, from Linux 6.15; the least that it takes is a second
    set(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1); // not with BBR, which has no slow start to have left
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    set(IPPROTO_TCP, rto_max_ms, 1000);
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max()};
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min(patience, most).count()));
}

/// Leaves a tuned connection to a failure detector of that patience, which gives the other end up later where
/// the network takes long. The kernel keeps the connection open for longer than the detector: once the kernel
/// has given up, it resets whatever the other host sends.
HERRING_SETUP inline void leave_to_detector(int socket, std::chrono::milliseconds patience) noexcept {
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max() / 5};
    int const value = static_cast<int>(5 * std::min(patience, most).count());
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof value);
}

/// Begins to connect over a new socket, tuned unless `patience` is 0. False, and errno: that failed at once;
/// then `socket` is −1 where there is no socket.
HERRING_SETUP inline bool dial(descriptor& socket, endpoint const& to,
                               std::chrono::milliseconds patience = {}) noexcept {
    socket = descriptor(forks::own(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (socket.get() < 0) return false;
    if (patience.count() != 0) tune(socket.get(), patience);
    return ::connect(socket.get(), to.get(), to.size) == 0 || errno == EINPROGRESS;
}
/// Returns the result of connecting, once the socket is writable: 0, or the reason as in errno.
HERRING_SETUP inline int connect_error(int socket) noexcept {
    int why = 0;
    socklen_t size = sizeof why;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &why, &size) != 0) return errno;
    if (why != 0) return why;
    endpoint other;
    other.size = sizeof other.raw;
    if (::getpeername(socket, other.get(), &other.size) != 0) return errno;
    // A socket that connects to its own port on loopback meets itself when no process listens there.
    endpoint const own = local_end(socket);
    bool const itself = own.size == other.size && std::memcmp(&own.raw, &other.raw, own.size) == 0;
    return itself ? ECONNREFUSED : 0;
}

/// True if the error of a socket is that the kernel has lost patience, and not an answer of the other host.
constexpr bool is_timeout(int why) noexcept {
    return why == ETIMEDOUT || why == EHOSTUNREACH || why == ENETUNREACH;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_SOCKETS_HPP
