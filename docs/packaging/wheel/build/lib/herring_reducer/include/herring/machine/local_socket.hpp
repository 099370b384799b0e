// herring: unix sockets (seqpacket, abstract names) between processes of one user; packets with a descriptor.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_LOCAL_SOCKET_HPP
#define HERRING_MACHINE_LOCAL_SOCKET_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/forks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// An abstract address: no file in the file system; it vanishes with its last socket.
struct local_address {
    sockaddr_un raw{};
    socklen_t size = 0;

    HERRING_SETUP explicit local_address(std::string_view name) noexcept {
        raw.sun_family = AF_UNIX;
        std::size_t const length = std::min(name.size(), sizeof raw.sun_path - 1);
        std::memcpy(raw.sun_path + 1, name.data(), length);
        size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    }
    sockaddr const* get() const noexcept { return reinterpret_cast<sockaddr const*>(&raw); }
};

/// Returns a non-blocking socket that listens at `name`; −1 and errno on failure. `waiting`: the most
/// connections that wait to be accepted; the kernel may lower it.
HERRING_SETUP inline descriptor listen_locally(std::string_view name, int waiting = 64) noexcept {
    local_address const at(name);
    descriptor socket(forks::own(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (socket.get() < 0 || ::bind(socket.get(), at.get(), at.size) != 0 ||
        ::listen(socket.get(), waiting) != 0)
        return descriptor();
    return socket;
}
/// Returns a socket connected to `name`; −1 and errno if no process listens there or too many connect at
/// once. Never blocks.
HERRING_SETUP inline descriptor dial_locally(std::string_view name) noexcept {
    local_address const at(name);
    descriptor socket(forks::own(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (socket.get() < 0 || ::connect(socket.get(), at.get(), at.size) != 0) return descriptor();
    return socket;
}

/// True if the process at the other end belongs to this process's user.
HERRING_SETUP inline bool same_user(int socket) noexcept {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

/// Sends one packet, with the descriptor `passed` unless it is −1. False, and errno: it was not sent.
HERRING_SETUP inline bool send_packet(int socket, std::span<std::byte const> bytes, int passed) noexcept {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    if (passed >= 0) {
        out.msg_control = room;
        out.msg_controllen = sizeof room;
        cmsghdr* const head = CMSG_FIRSTHDR(&out);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof passed);
        std::memcpy(CMSG_DATA(head), &passed, sizeof passed);
    }
    ssize_t sent = -1;
    do sent = ::sendmsg(socket, &out, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes.size());
}

/// A received packet.
struct packet {
    ssize_t bytes = -1;          ///< −1: none now; 0: the other end has closed the connection
    bool whole = true;           ///< false: its bytes or its descriptors did not fit
    std::size_t descriptors = 0; ///< number of descriptors in it
    descriptor passed{};         ///< the descriptor, if there is exactly one; several are all closed
};

/// Receives one packet and takes ownership of all its descriptors.
HERRING_SETUP inline packet receive_packet(int socket, std::span<std::byte> into) noexcept {
    constexpr std::size_t most = 253; // SCM_MAX_FD: a packet has no more
    iovec part{into.data(), into.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * most)];
    msghdr in{};
    in.msg_iov = &part;
    in.msg_iovlen = 1;
    in.msg_control = room;
    in.msg_controllen = sizeof room;
    packet found;
    do found.bytes = ::recvmsg(socket, &in, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (found.bytes < 0 && errno == EINTR);
    if (found.bytes < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) found.bytes = 0;
        return found;
    }
    found.whole = (in.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    for (cmsghdr* head = CMSG_FIRSTHDR(&in); head != nullptr; head = CMSG_NXTHDR(&in, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        std::size_t const count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int each = -1;
            std::memcpy(&each, CMSG_DATA(head) + i * sizeof each, sizeof each);
            descriptor owned(each);
            if (++found.descriptors == 1) found.passed = std::move(owned);
        }
    }
    if (found.descriptors > 1) found.passed = descriptor();
    return found;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_LOCAL_SOCKET_HPP
