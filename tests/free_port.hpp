// herring: a port of this machine that nobody listens on, for tests that are told an address.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FREE_PORT_HPP
#define HERRING_TESTS_FREE_PORT_HPP

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/// Below the ports that Linux gives to outgoing connections (from 32768), so that no other test's connection takes it before it is
/// listened on; tests that run at once begin at different ones. 0: none is free.
inline int free_port() {
    constexpr int first = 20000, count = 12000;
    static int next = static_cast<int>(::getpid()) * 7;
    for (int tries = 0; tries < count; ++tries) {
        int const port =
            first + static_cast<int>(static_cast<unsigned>(next++) % static_cast<unsigned>(count));
        int const s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s < 0) return 0;
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(static_cast<in_port_t>(port));
        bool const free = ::bind(s, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0;
        ::close(s);
        if (free) return port;
    }
    return 0;
}

#endif // HERRING_TESTS_FREE_PORT_HPP
