// herring: socket addresses, this machine's network interfaces, and listening sockets.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_ADDRESS_HPP
#define HERRING_MACHINE_ADDRESS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/machine/forks.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// An IPv4 or IPv6 address with its port.
struct endpoint {
    sockaddr_storage raw{};
    socklen_t size = 0;

    sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&raw); }
    sockaddr const* get() const noexcept { return reinterpret_cast<sockaddr const*>(&raw); }
    int family() const noexcept { return raw.ss_family; }

    static endpoint of(sockaddr const* from, socklen_t size) noexcept {
        endpoint copy;
        copy.size =
            size < static_cast<socklen_t>(sizeof copy.raw) ? size : static_cast<socklen_t>(sizeof copy.raw);
        std::memcpy(&copy.raw, from, copy.size);
        return copy;
    }

    /// Reads bytes of another process; false if they are no IPv4 or IPv6 address.
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        if (from.size() > sizeof raw || from.size() < sizeof raw.ss_family) return false;
        std::memcpy(&raw, from.data(), from.size());
        size = static_cast<socklen_t>(from.size());
        return (family() == AF_INET && size == sizeof(sockaddr_in)) ||
               (family() == AF_INET6 && size == sizeof(sockaddr_in6));
    }
    /// The bytes that `read` takes.
    std::span<std::byte const> bytes() const noexcept {
        return {reinterpret_cast<std::byte const*>(&raw), size};
    }

    std::uint16_t port() const noexcept {
        if (family() == AF_INET) return ntohs(reinterpret_cast<sockaddr_in const*>(&raw)->sin_port);
        if (family() == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6 const*>(&raw)->sin6_port);
        return 0;
    }
    void port(std::uint16_t number) noexcept {
        if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&raw)->sin_port = htons(number);
        if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&raw)->sin6_port = htons(number);
    }

    bool wildcard() const noexcept {
        if (family() == AF_INET) return reinterpret_cast<sockaddr_in const*>(&raw)->sin_addr.s_addr == 0;
        return family() == AF_INET6 &&
               IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<sockaddr_in6 const*>(&raw)->sin6_addr);
    }
    bool loopback() const noexcept {
        if (family() == AF_INET)
            return (ntohl(reinterpret_cast<sockaddr_in const*>(&raw)->sin_addr.s_addr) >> 24) == 127;
        return family() == AF_INET6 &&
               IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6 const*>(&raw)->sin6_addr);
    }
    bool link_local() const noexcept {
        return family() == AF_INET6 &&
               IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6 const*>(&raw)->sin6_addr);
    }

    /// Returns the IP literal, with its scope if it has one.
    HERRING_SETUP std::string address() const {
        char text[NI_MAXHOST] = {};
        if (::getnameinfo(get(), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "unknown";
        return text;
    }
    /// Returns "1.2.3.4:port" or "[::1]:port".
    HERRING_SETUP std::string text() const {
        std::string const host = address();
        bool const v6 = family() == AF_INET6;
        return detail::text({v6 ? "[" : "", host, v6 ? "]:" : ":", port()});
    }
};

/// Returns the local address of a socket.
HERRING_SETUP inline endpoint local_end(int socket) noexcept {
    endpoint local;
    local.size = sizeof local.raw;
    if (::getsockname(socket, local.get(), &local.size) != 0) local.size = 0;
    return local;
}

/// One address of a network interface.
struct interface_address {
    char name[IF_NAMESIZE + 1] = {};
    endpoint at;
    bool up = false;
};

/// Returns every address of the interfaces of this process's network namespace.
HERRING_SETUP inline fixed_array<interface_address> interfaces() {
    fixed_array<interface_address> found;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return found;
    auto const each = [&](auto&& take) {
        for (ifaddrs const* i = list; i != nullptr; i = i->ifa_next)
            if (i->ifa_addr != nullptr &&
                (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6))
                take(*i);
    };
    std::size_t count = 0;
    each([&](ifaddrs const&) { ++count; });
    found = fixed_array<interface_address>(count);
    each([&](ifaddrs const& i) {
        interface_address& next = found[found.size() - count--];
        bool const v4 = i.ifa_addr->sa_family == AF_INET;
        std::strncpy(next.name, i.ifa_name, IF_NAMESIZE);
        next.at = endpoint::of(i.ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        next.up = (i.ifa_flags & IFF_UP) != 0;
    });
    ::freeifaddrs(list);
    return found;
}

/// Returns "lo (127.0.0.1, ::1), eth0 (10.0.0.2)".
HERRING_SETUP inline std::string interfaces_text(fixed_array<interface_address> const& all) {
    std::string out;
    auto const same = [&](std::size_t a, std::size_t b) {
        return std::strcmp(all[a].name, all[b].name) == 0;
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t first = 0;
        while (!same(first, i)) ++first;
        if (first != i) continue; // already named
        append(out, {out.empty() ? "" : ", ", all[i].name, " (", all[i].at.address()});
        for (std::size_t j = i + 1; j < all.size(); ++j)
            if (same(i, j)) append(out, {", ", all[j].at.address()});
        append(out, {")"});
    }
    return out.empty() ? "none" : out;
}

/// Returns the address that HERRING_INTERFACE names by an interface's name or by one of its IP literals.
///
/// Prefers, among several addresses of an interface, `family` (AF_INET, AF_INET6; 0: any), then one that is
/// not link-local, then IPv4, then the first.
///
/// Errors:  `unreachable`, with the interfaces that there are.
HERRING_SETUP inline std::string interface_address_of(std::string const& wanted, int family) {
    fixed_array<interface_address> const all = interfaces();
    interface_address const* best = nullptr;
    auto const score = [&](interface_address const& i) {
        return (i.at.family() == family ? 4 : 0) + (i.at.link_local() ? 0 : 2) +
               (i.at.family() == AF_INET ? 1 : 0);
    };
    for (interface_address const& i : all) {
        if (i.at.address() == wanted) return wanted;
        if (i.name == wanted && (best == nullptr || score(i) > score(*best))) best = &i;
    }
    if (best == nullptr)
        throw error(errc::unreachable, -1, -1, "join",
                    {"HERRING_INTERFACE is '", wanted,
                     "', but this machine has no such interface or address; it has ", interfaces_text(all)});
    return best->at.address();
}

/// Returns an address that other machines may reach: not loopback, IPv4 first; "127.0.0.1" if there is none.
HERRING_SETUP inline std::string outward_address() {
    fixed_array<interface_address> const all = interfaces();
    for (int const family : {AF_INET, AF_INET6})
        for (interface_address const& i : all)
            if (i.up && i.at.family() == family && !i.at.loopback() && !i.at.link_local())
                return i.at.address();
    return "127.0.0.1";
}

/// Returns a non-blocking socket that listens on exactly `at`; -1 and errno on failure.
HERRING_SETUP inline int listen_on(endpoint const& at) noexcept {
    int const listener = forks::own(::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (listener < 0) return -1;
    int const on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on,
                 sizeof on); // the TIME_WAIT of an earlier job does not occupy the port
    if (::bind(listener, at.get(), at.size) == 0 && ::listen(listener, 1024) == 0) return listener;
    int const why = errno;
    ::close(listener);
    errno = why;
    return -1;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_ADDRESS_HPP
