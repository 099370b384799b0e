// herring: a port of this machine that nobody listens on, for tests that are told an address.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FREE_PORT_HPP
#define HERRING_TESTS_FREE_PORT_HPP

#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/// A port of `host` (an address) that is this process's until it ends, and that anything which sets SO_REUSEADDR can listen on,
/// as Herring does, again and again. 0: there is none.
///
/// It lies below the ports that Linux gives to outgoing connections (from 32768). It is bound without SO_REUSEADDR, so that of
/// two tests that call this at once one gets another port; with the option, set once it is bound, it leaves room for a listener. Who
/// connects while nobody listens is refused.
inline int free_port(char const* host = "127.0.0.1") {
    constexpr unsigned first = 20000, count = 12000;
    static unsigned next = static_cast<unsigned>(::getpid()) * 7;
    union {
        sockaddr_in6 v6; // the largest: all of it is zero
        sockaddr_in v4;
        sockaddr any;
    } at{};
    bool const is_v4 = ::inet_pton(AF_INET, host, &at.v4.sin_addr) == 1;
    if (!is_v4 && ::inet_pton(AF_INET6, host, &at.v6.sin6_addr) != 1) return 0;
    at.any.sa_family = is_v4 ? AF_INET : AF_INET6;
    for (unsigned tries = 0; tries < count; ++tries) {
        auto const port = static_cast<std::uint16_t>(first + next++ % count);
        (is_v4 ? at.v4.sin_port : at.v6.sin6_port) = htons(port);
        int const s = ::socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s < 0) return 0;
        int const on = 1;
        if (::bind(s, &at.any, is_v4 ? sizeof at.v4 : sizeof at.v6) == 0 &&
            ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0)
            return port; // and `s` stays open
        ::close(s);
    }
    return 0;
}

/// `host` and such a port; empty: there is none.
inline std::string free_address(std::string const& host = "127.0.0.1") {
    int const port = free_port(host.c_str());
    if (port == 0) return {};
    return (host.find(':') == std::string::npos ? host : '[' + host + ']') + ':' + std::to_string(port);
}

#endif // HERRING_TESTS_FREE_PORT_HPP
