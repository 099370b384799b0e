// herring: tests of service/pacing.hpp: the sockets of another process, and shares of a rate.
// SPDX-License-Identifier: Apache-2.0
#include "herring/service/pacing.hpp"

#include "doctest/doctest.h"

#include "herring/machine/address.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace herring::detail;
using namespace herring::detail::leasing;

namespace {

/// Both ends of a TCP connection.
std::pair<descriptor, descriptor> connected() {
    endpoint at;
    at.raw.ss_family = AF_INET;
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&at.raw);
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.size = sizeof(sockaddr_in);
    descriptor const listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), at.get(), at.size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    at = local_end(listener.get());
    descriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(one.get(), at.get(), at.size) == 0);
    return {std::move(one), descriptor(::accept(listener.get(), nullptr, nullptr))};
}

std::uint64_t rate_of(descriptor const& socket) {
    std::uint64_t rate = 0;
    socklen_t size = sizeof rate;
    REQUIRE(::getsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size) == 0);
    return rate;
}

} // namespace

TEST_CASE("pacing: another process's TCP sockets are counted and paced, and none is kept") {
    auto [near, far] = connected();
    auto const [slow, unread] = connected();
    pid_t const child = ::fork();
    if (child == 0) {
        far = descriptor();
        ::pause();
        ::_exit(0);
    }
    served_rank rank{child};
    for (int i = 0; i < 2000 && rank.sockets != 3; ++i) { // until the child has closed `far`
        rank.look();
        if (rank.sockets != 3) ::usleep(1'000);
    }
    REQUIRE(rank.sockets == 3);
    CHECK_FALSE(rank.busy);
    CHECK(rate_of(near) == ~std::uint64_t{0});
    std::array<char, 32'768> const bytes{};
    CHECK(::send(far.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    std::size_t const before = rank.sockets;
    for (int i = 0; i < 2000 && !rank.busy; ++i) {
        rank.look();
        rank.limit((std::max<std::size_t>(before, 2) - 1) * 1'000'000);
        if (!rank.busy) ::usleep(1'000);
    }
    CHECK(rank.busy);
    CHECK(rate_of(near) == 1'000'001);
    rank.look();
    rank.limit(1'000'000);
    CHECK_FALSE(rank.busy);
    while (::send(slow.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    for (std::uint64_t moved = 0; moved != rank.moved;) {
        moved = rank.moved;
        rank.look();
    }
    CHECK(rank.busy); // nothing moves, for the other end has no room: what waits does not make it idle
    { descriptor const closed = std::move(near); }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    pollfd end{far.get(), POLLIN, 0};
    CHECK(::poll(&end, 1, 10'000) == 1); // the other end has gone with the process
    rank.look();                         // of a process that there is not
    CHECK(rank.sockets == 0);
}

TEST_CASE("pacing: whether sockets of children can be copied is tried, and leaves no child") {
    auto [one, other] = connected();
    CHECK(fault_of_copies(one.get()) == 0);
    CHECK(fault_of_copies(-1) == EBADF);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("pacing: a rank's rate is its tenant's part, divided by its busy ranks") {
    static_assert(rate_of_rank(1000, 3, 1, 1) == 750);
    static_assert(rate_of_rank(1000, 1, 3, 1) == 250);
    static_assert(rate_of_rank(1000, 1, 1, 8) == 62);
    CHECK(rate_of_rank(1000, 3, 0, 0) == 1000); // alone, and about to begin
    CHECK(rate_of_rank(1000, 1, 3, 0) == 250);
}
