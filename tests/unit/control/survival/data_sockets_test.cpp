// herring: tests of control/survival/data_sockets.hpp: bounds for slow links, and sockets that come and go.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/survival/data_sockets.hpp"

#include "doctest/doctest.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace herring::detail;
using namespace std::chrono_literals;

namespace {

constexpr socket_report of(std::size_t in_flight, std::chrono::milliseconds round_trip,
                           std::chrono::milliseconds shortest = 1ms) {
    socket_report made;
    made.in_flight = in_flight;
    made.round_trip = round_trip;
    made.queueing = round_trip - shortest;
    return made;
}

/// Two ends of a connection on loopback.
struct pair {
    std::array<int, 2> ends{-1, -1};

    pair() {
        int const listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0);
        REQUIRE(::listen(listener, 1) == 0);
        REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) == 0);
        ends[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        REQUIRE(::connect(ends[0], reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
        ends[1] = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        REQUIRE(ends[1] >= 0);
        ::close(listener);
    }
    ~pair() {
        for (int const end : ends)
            if (end >= 0) ::close(end);
    }
};

std::vector<int> ranks_of(data_sockets& all, herring::time_point now = herring::clock::now()) {
    std::vector<int> ranks;
    all.look(now, true, [&](socket_report const& found) { ranks.push_back(found.rank); });
    return ranks;
}

} // namespace

TEST_CASE(
    "data sockets: the rate of what comes in is that of the last heartbeat or of the last four, the lower") {
    herring::time_point now = herring::clock::now();
    incoming_rate rate;
    auto const after = [&](std::uint64_t received) { return rate.look(now += 500ms, received); };
    for (int i = 0; i < 4; ++i) CHECK(after(0) < 1); // nothing is known yet
    CHECK(after(1'000'000) == 500'000);
    CHECK(after(2'000'000) == 1'000'000);
    CHECK(after(3'000'000) == 1'500'000);
    CHECK(after(4'000'000) == 2'000'000);
    CHECK(after(5'000'000) == 2'000'000);
    CHECK(after(5'100'000) == 200'000); // it falls
    CHECK(after(5'100'000) == 0);
    CHECK(after(6'000'000) == 1'000'000);
}

TEST_CASE("data sockets: what is in flight is bounded on slow links only, to half a second") {
    static_assert(flight_bound(of(250'000, 2s)) == 62'500);      // 1 Mbit/s
    static_assert(flight_bound(of(62'500, 500ms)) == 62'500);    // as it stays
    static_assert(flight_bound(of(8'000, 1s)) == 4'000);         // 64 kbit/s
    static_assert(flight_bound(of(1'448, 1s)) == 3'000);         // two packets at least
    static_assert(flight_bound(of(250'000, 99ms)) == 0);         // nothing waits
    static_assert(flight_bound(of(250'000, 200ms, 150ms)) == 0); // it is far, not slow
    static_assert(flight_bound(of(4'000'000, 200ms)) == 0);      // 160 Mbit/s
    static_assert(flight_bound(of(0, 1s)) == 0);
}

TEST_CASE("data sockets: a socket is looked at from its registration until its end") {
    data_sockets* const all = data_sockets::make();
    REQUIRE(all != nullptr);
    pair one, two;
    {
        data_socket first(all, 3, one.ends[0]), second(all, 5, two.ends[0]);
        herring::time_point const begun = herring::clock::now();
        for (int i = 4; i > 0; --i) CHECK(ranks_of(*all, begun - i * 1ms) == std::vector<int>{5, 3});
        char byte = 0;
        REQUIRE(::send(one.ends[1], &byte, 1, 0) == 1);
        REQUIRE(::recv(one.ends[0], &byte, 1, 0) == 1);
        all->look(begun, true, [&](socket_report const& found) {
            CHECK(found.incoming == doctest::Approx(found.rank == 3 ? 250 : 0)); // a byte in 4 ms
            CHECK(found.received == (found.rank == 3 ? 1u : 0u));
            CHECK(found.unanswered == 0);
        });
        data_socket moved(std::move(first));
        first.reset();
        CHECK(ranks_of(*all).size() == 2);
        moved.reset();
        CHECK(ranks_of(*all) == std::vector<int>{5});
        all->release(); // the world ends before its transport
    }
    data_socket nowhere;
    nowhere.reset();
    CHECK_THROWS_AS(data_socket(nullptr, 1, one.ends[0]), std::bad_alloc);
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    CHECK_FALSE(socket_report().read(pipe_ends[0]));
    for (int const end : pipe_ends) ::close(end);
}

TEST_CASE(
    "data sockets: one that is kept brings what was sent, whatever comes in meanwhile, and is closed then") {
    data_sockets* const all = data_sockets::make();
    REQUIRE(all != nullptr);
    pair one;
    data_socket mine(all, 3, one.ends[0]);
    std::vector<char> bytes(64 << 10);
    std::size_t sent = 0;
    for (ssize_t n = 0; (n = ::send(one.ends[0], bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;)
        sent += static_cast<std::size_t>(n);
    REQUIRE(::send(one.ends[1], bytes.data(), 1, 0) == 1); // nobody reads it
    mine.keep();
    mine.keep(); // it is not there any more
    CHECK(ranks_of(*all).empty());
    CHECK(all->close_arrived());
    REQUIRE(::send(one.ends[1], bytes.data(), 1, 0) == 1);
    std::size_t received = 0;
    ssize_t last = 0;
    while ((last = ::recv(one.ends[1], bytes.data(), bytes.size(), 0)) > 0)
        received += static_cast<std::size_t>(last);
    CHECK(last == 0);
    CHECK(received == sent);
    int const number = std::exchange(one.ends[0], -1);
    while (all->close_arrived()) ::poll(nullptr, 0, 1);
    CHECK(::fcntl(number, F_GETFD) == -1);
    all->release();
}

TEST_CASE("data sockets: what nobody takes is closed with the last holder; what has arrived, at once") {
    data_sockets* const all = data_sockets::make();
    REQUIRE(all != nullptr);
    pair one, two;
    {
        data_socket first(all, 3, one.ends[0]), second(all, 5, two.ends[0]);
        std::vector<char> bytes(64 << 10);
        while (::send(one.ends[0], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
        }
        first.keep();
        second.keep(); // nothing was sent
        CHECK(::fcntl(two.ends[0], F_GETFD) == -1);
        CHECK(::fcntl(one.ends[0], F_GETFD) != -1);
    }
    all->release();
    CHECK(::fcntl(one.ends[0], F_GETFD) == -1);
    one.ends[0] = two.ends[0] = -1;
}
