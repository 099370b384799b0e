// herring: tests of transport/tcp/sleep.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/sleep.hpp"

#include "doctest/doctest.h"

#include <array>
#include <chrono>
#include <thread>

using namespace herring;
using namespace std::chrono_literals;

TEST_CASE("tcp_waker: a wake-up ends a sleep, also one that begins later, and only one") {
    detail::tcp_waker waker(true, 0);
    std::array<pollfd, 2> polled{pollfd{-1, 0, 0}, pollfd{waker.descriptor(), POLLIN, 0}};
    waker.wake();
    waker.wake(); // pending already
    time_point const before = clock::now();
    waker.sleep(polled, before + 20s);
    CHECK(clock::now() < before + 10s);
    waker.sleep(polled, clock::now() + 1ms);
    CHECK(polled[1].revents == 0);
    std::thread other([&] { waker.wake(); });
    waker.sleep(polled, clock::now() + 20s);
    other.join();
    CHECK(clock::now() < before + 10s);
}

TEST_CASE("tcp_waker: a time that has passed is no sleep; without need there is no descriptor") {
    detail::tcp_waker none(false, 0);
    CHECK(none.descriptor() == -1);
    std::array<pollfd, 1> polled{pollfd{-1, 0, 0}};
    none.sleep(polled, time_point{});
}
