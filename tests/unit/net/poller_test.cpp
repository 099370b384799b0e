// herring: tests of net/poller.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/poller.hpp"

#include "doctest/doctest.h"

#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace net_poller_test {

using herring::detail::descriptor;
using herring::detail::poller;

bool readable(poller const& set) {
    pollfd one{set.descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

/// The keys of what came, as a sum; a wake-up is taken off, and none.
std::uint64_t sleep(poller& set, int most_ms) {
    epoll_event found[8];
    std::uint64_t sum = 0;
    for (int i = 0, got = set.wait(found, 8, most_ms); i < got; ++i) {
        epoll_event const& each = found[i];
        if (each.data.u64 == poller::wake_key)
            CHECK(set.woken());
        else
            sum += each.data.u64;
    }
    return sum;
}

TEST_CASE("poller: a wake-up ends the sleep that comes, once") {
    poller set("test");
    CHECK_FALSE(readable(set));
    set.wake();
    set.wake();
    CHECK(readable(set));
    sleep(set, 60000);
    CHECK_FALSE(readable(set));
    sleep(set, 0);
    set.wake();
    CHECK(set.woken());
    CHECK_FALSE(readable(set));
}

TEST_CASE("poller: another thread ends a sleep") {
    poller set("test");
    std::thread other([&] { set.wake(); });
    sleep(set, 600000);
    other.join();
}

TEST_CASE("poller: a signal handler wakes it, and errno stays") {
    static poller* rung = nullptr;
    poller set("test");
    rung = &set;
    auto const before = std::signal(SIGUSR2, [](int) { rung->wake(); });
    errno = ENOTEMPTY;
    (void)std::raise(SIGUSR2);
    CHECK(errno == ENOTEMPTY);
    (void)std::signal(SIGUSR2, before);
    CHECK(readable(set));
}

TEST_CASE("poller: it sleeps on descriptors until they are forgotten") {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
    descriptor const here(both[0]), there(both[1]);
    poller set("test");
    REQUIRE(set.watch(here.get(), 7, EPOLLIN));
    CHECK_FALSE(set.watch(here.get(), 7, EPOLLIN)); // twice
    CHECK_FALSE(readable(set));
    set.rewatch(here.get(), 8, EPOLLIN | EPOLLOUT);
    CHECK(readable(set)); // there is room
    set.rewatch(here.get(), 9, EPOLLIN);
    CHECK_FALSE(readable(set));
    REQUIRE(::write(there.get(), "x", 1) == 1);
    CHECK(sleep(set, 60000) == 9);
    CHECK(readable(set)); // nobody has read it
    set.forget(here.get());
    CHECK_FALSE(readable(set));
}

} // namespace net_poller_test
