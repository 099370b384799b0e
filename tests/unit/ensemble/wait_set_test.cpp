// herring: what a frontend sleeps on: descriptors, a timer, and the events for those who wait elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/wait_set.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

namespace ensemble_wait_set_test {

using herring::detail::ensembles::wait_set;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
bool is_readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
}

TEST_CASE("ensemble wait_set: a timer of nanoseconds ends a wait, also one that is under way") {
    wait_set set;
    wait_set::found found;
    set.wait(found, 0);
    CHECK(found.count == 0);
    std::int64_t const at = now_ns() + 300'000;
    set.arm(at);
    set.wait(found, 60'000);
    CHECK(now_ns() >= at);
    REQUIRE(found.count == 1);
    CHECK(found.key(0) == wait_set::timer_key);
    CHECK(is_readable(set.descriptor()));
    set.timer_has_fired();
    CHECK(!is_readable(set.descriptor()));

    set.arm(now_ns() + 3'600'000'000'000);
    std::thread sleeper([&] { set.wait(found, 60'000); });
    set.arm(1); // the past
    sleeper.join();
    CHECK(found.count == 1);
    set.timer_has_fired();
    set.wait(found, 0);
    CHECK(found.count == 0);
}

TEST_CASE("ensemble wait_set: a timer that goes off earlier than it need stays as it is, and the next one is "
          "armed after it") {
    wait_set set;
    wait_set::found found;
    std::int64_t const early = now_ns() + 300'000;
    set.arm(early);
    set.arm(early + 3'600'000'000'000);
    set.arm(wait_set::no_time);
    set.wait(found, 60'000);
    CHECK(now_ns() >= early);
    REQUIRE(found.count == 1);
    set.timer_has_fired();
    set.wait(found, 0);
    CHECK(found.count == 0);
    std::int64_t const at = now_ns() + 300'000;
    set.arm(at);
    set.wait(found, 60'000);
    CHECK(now_ns() >= at);
    CHECK(found.count == 1);
}

TEST_CASE("ensemble wait_set: lanes by their keys, for reading and for writing") {
    wait_set set;
    wait_set::found found;
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    REQUIRE(set.watch(ends[0], 17));
    set.wait(found, 0);
    CHECK(found.count == 0);
    set.rewatch(ends[0], 17, true);
    set.wait(found, 0);
    REQUIRE(found.count == 1);
    CHECK(found.key(0) == 17);
    set.rewatch(ends[0], 17, false);
    CHECK(::send(ends[1], "x", 1, 0) == 1);
    set.wait(found, 60'000);
    CHECK(found.count == 1);
    set.forget(ends[0]);
    set.wait(found, 0);
    CHECK(found.count == 0);
    CHECK(!set.watch(-1, 3));
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("ensemble wait_set: waking who waits, and showing who does not") {
    wait_set set;
    wait_set::found found;
    set.wake();
    set.wait(found, 60'000);
    REQUIRE(found.count == 1);
    CHECK(found.key(0) == wait_set::wake_key);
    set.woken();
    set.show();
    set.wait(found, 0);
    CHECK(found.count == 0); // is not for who drives
    CHECK(is_readable(set.descriptor()));
    set.fetched();
    CHECK(!is_readable(set.descriptor()));
}

} // namespace ensemble_wait_set_test
