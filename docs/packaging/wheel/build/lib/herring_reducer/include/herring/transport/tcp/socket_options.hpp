// herring: the options of a data socket of transport::tcp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_SOCKET_OPTIONS_HPP
#define HERRING_TRANSPORT_TCP_SOCKET_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world_times.hpp"
#include "herring/model/tunings.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail {

/// Sets the options of a connected data socket: no delay, keepalive, timeout, congestion control.
///
/// Errors: `unsupported` where the kernel does not offer the congestion control that `control` names.
HERRING_SETUP inline void set_data_socket_options(int socket, transport::congestion control,
                                                  std::chrono::milliseconds timeout, int rank) {
    auto const set = [&](int level, int option, int value) {
        (void)::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // Both are needed: keepalive detects a dead idle peer, the user timeout a peer that takes no data.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    // At least the usual timeout: a call may have a longer timeout than construction.
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max()};
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::clamp(timeout, usual_timeout, most).count()));
    auto const choose = [&](char const* algorithm) {
        return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, algorithm,
                            static_cast<socklen_t>(std::strlen(algorithm))) == 0;
    };
    using transport::congestion;
    if (control == congestion::system) return;
    if (control == congestion::unpaced) {
        if (!choose("reno")) (void)choose("cubic");
        return;
    }
    char const* const algorithm = control == congestion::reno    ? "reno"
                                  : control == congestion::cubic ? "cubic"
                                                                 : "bbr";
    if (!choose(algorithm))
        throw error(errc::unsupported, rank, -1, "connect",
                    {"the kernel does not offer congestion control '", algorithm,
                     "': see /proc/sys/net/ipv4/tcp_allowed_congestion_control, or use "
                     "congestion::unpaced"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_SOCKET_OPTIONS_HPP
