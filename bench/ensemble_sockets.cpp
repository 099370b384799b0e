// herring: the bound of the ensemble bench's row over TCP: sockets, epoll and a fold, without anything that could fail or be late.
// SPDX-License-Identifier: Apache-2.0
//
// The frontend sends to all members, then sleeps in epoll_wait until their rows are in; a member sleeps in recv. Fewer system
// calls than these do not get a request to four processes and back.

#include "ensemble_harness.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace {

using namespace ensemble_bench;

constexpr std::size_t head = 32; // as large as Herring's

void check(bool good, char const* what) {
    if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}
int opened() {
    int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(socket >= 0, "socket");
    return socket;
}
void no_delay(int socket) {
    int const on = 1;
    check(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
}
sockaddr_in loopback(std::uint32_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

void serve(std::size_t member, options const& set, send_times& times) {
    while (times.go().load() == 0) ::usleep(1000);
    sockaddr_in const at = loopback(times.go().load());
    int const socket = opened();
    check(::connect(socket, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0, "connect");
    no_delay(socket);
    std::vector<float> const row = logits(member, set.elements);
    std::vector<std::byte> reply(head + format::row_bytes(set.elements)), request(head + set.request_bytes);
    reply[0] = static_cast<std::byte>(member);
    check(::send(socket, reply.data(), 1, 0) == 1, "a name");
    while (::recv(socket, request.data(), request.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(request.size())) {
        std::uint64_t id = 0;
        std::memcpy(&id, request.data() + head, sizeof id);
        (void)format::encode(row, std::span(reply).subspan(head));
        times.sending(member, id);
        check(::send(socket, reply.data(), reply.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(reply.size()),
              "a reply");
    }
}

} // namespace

int main(int count, char** value) try {
    options const set(count, value);
    send_times times;
    member_processes const members(set.members, [&](std::size_t m) { serve(m, set, times); });

    int const listener = opened(), set_of_all = ::epoll_create1(EPOLL_CLOEXEC);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    check(::bind(listener, reinterpret_cast<sockaddr const*>(&at), sizeof at) == 0, "bind");
    check(::listen(listener, 64) == 0, "listen");
    check(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) == 0, "getsockname");
    times.go().store(ntohs(at.sin_port));
    std::vector<int> sockets(set.members);
    for (std::size_t i = 0; i < set.members; ++i) {
        int const socket = ::accept(listener, nullptr, nullptr);
        std::byte name{};
        check(socket >= 0 && ::recv(socket, &name, 1, MSG_WAITALL) == 1, "a member");
        no_delay(socket);
        sockets.at(static_cast<std::size_t>(name)) = socket;
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = static_cast<std::uint64_t>(name);
        check(::epoll_ctl(set_of_all, EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
    }

    folder mean(set.elements, set.members);
    std::size_t const bytes = head + format::row_bytes(set.elements);
    std::vector<std::vector<std::byte>> rows(set.members, std::vector<std::byte>(bytes));
    std::vector<std::size_t> got(set.members);
    std::vector<std::span<std::byte const>> views(set.members);
    for (std::size_t m = 0; m < set.members; ++m)
        views[m] = std::span<std::byte const>(rows[m]).subspan(head);
    std::vector<std::byte> request(head + set.request_bytes);
    std::vector<epoll_event> found(set.members);
    latencies result = measure(set, times, [&](std::uint64_t id) -> std::size_t {
        std::memcpy(request.data() + head, &id, sizeof id);
        for (int const socket : sockets)
            check(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
                      static_cast<ssize_t>(request.size()),
                  "send");
        std::fill(got.begin(), got.end(), 0);
        for (std::size_t in = 0; in < set.members;) {
            int const ready = ::epoll_wait(set_of_all, found.data(), static_cast<int>(found.size()), 1000);
            check(ready > 0, "rows");
            for (int i = 0; i < ready; ++i) {
                std::size_t const m = found[static_cast<std::size_t>(i)].data.u64;
                ssize_t const more =
                    ::recv(sockets[m], rows[m].data() + got[m], bytes - got[m], MSG_DONTWAIT);
                check(more > 0, "a row");
                got[m] += static_cast<std::size_t>(more);
                in += got[m] == bytes;
            }
        }
        mean.fold(views);
        return set.members;
    });
    result.print(set, "sockets");
    return 0;
} catch (std::exception const& problem) {
    std::fprintf(stderr, "ensemble_sockets: %s\n", problem.what());
    return 1;
}
