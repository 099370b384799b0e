// herring: a socket to which every packet is lost, for tests: the loopback interface loses none.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_DEAF_SOCKET_HPP
#define HERRING_TESTS_DEAF_SOCKET_HPP

#include <cstdio>

#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

/// From now on every packet that comes to the socket is lost, acknowledgements too, or none any more. Returns
/// false where the system forbids it.
inline bool set_deaf(int socket, bool deaf) {
    sock_filter drop[] = {{BPF_RET | BPF_K, 0, 0, 0}};
    sock_fprog const all{1, drop};
    return ::setsockopt(socket, SOL_SOCKET, deaf ? SO_ATTACH_FILTER : SO_DETACH_FILTER, &all, sizeof all) ==
           0;
}

/// Returns whether sockets can be deaf; says what is left out where they cannot.
inline bool can_be_deaf() {
    static bool const can = [] {
        int const socket = ::socket(AF_INET, SOCK_STREAM, 0);
        bool const done = set_deaf(socket, true);
        ::close(socket);
        if (!done)
            std::puts("SKIPPED: unit: ranks whose network loses packets: sockets may have no filter here "
                      "(SO_ATTACH_FILTER; root may)");
        return done;
    }();
    return can;
}

#endif // HERRING_TESTS_DEAF_SOCKET_HPP
