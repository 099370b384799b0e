// herring: tests of ensemble/member_bell.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_bell.hpp"

#include "doctest/doctest.h"

#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <csignal>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ensemble_member_bell_test {

using herring::detail::descriptor;
using herring::detail::ensembles::member_bell;

bool readable(member_bell const& bell) {
    pollfd one{bell.descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

TEST_CASE("ensemble member bell: a wake-up ends the sleep that comes, once") {
    member_bell bell;
    CHECK_FALSE(readable(bell));
    bell.wake();
    bell.wake();
    CHECK(readable(bell));
    bell.sleep(60000);
    CHECK_FALSE(readable(bell));
    bell.sleep(0);
    bell.wake();
    bell.settle();
    CHECK_FALSE(readable(bell));
}

TEST_CASE("ensemble member bell: another thread ends a sleep") {
    member_bell bell;
    std::thread other([&] { bell.wake(); });
    bell.sleep(600000);
    other.join();
}

TEST_CASE("ensemble member bell: a signal handler wakes it, and errno stays") {
    static member_bell* rung = nullptr;
    member_bell bell;
    rung = &bell;
    auto const before = std::signal(SIGUSR2, [](int) { rung->wake(); });
    errno = ENOTEMPTY;
    (void)std::raise(SIGUSR2);
    CHECK(errno == ENOTEMPTY);
    (void)std::signal(SIGUSR2, before);
    CHECK(readable(bell));
}

TEST_CASE("ensemble member bell: it sleeps on descriptors until they are forgotten") {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
    descriptor const here(both[0]), there(both[1]);
    member_bell bell;
    REQUIRE(bell.watch(here.get()));
    CHECK_FALSE(bell.watch(here.get())); // twice
    CHECK_FALSE(readable(bell));
    bell.rewatch(here.get(), true);
    CHECK(readable(bell)); // there is room
    bell.rewatch(here.get(), false);
    CHECK_FALSE(readable(bell));
    REQUIRE(::write(there.get(), "x", 1) == 1);
    bell.sleep(60000);
    CHECK(readable(bell)); // nobody has read it
    bell.forget(here.get());
    CHECK_FALSE(readable(bell));
}

} // namespace ensemble_member_bell_test
