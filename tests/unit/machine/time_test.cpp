// herring: tests of machine/time.hpp: spans as system calls take them, and a sleep.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/time.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <pthread.h>
#include <signal.h>

using namespace std::chrono_literals;

TEST_CASE("sleep_for: sleeps for the whole time, and not at all for none") {
    auto const before = std::chrono::steady_clock::now();
    herring::detail::sleep_for(15ms);
    CHECK(std::chrono::steady_clock::now() - before >= 15ms);
    herring::detail::sleep_for(0ns);
    herring::detail::sleep_for(-5s);
    CHECK(std::chrono::steady_clock::now() - before < 60s);
}

TEST_CASE("sleep_for: a signal ends it") {
    struct sigaction quiet {
    }, before{};
    quiet.sa_handler = [](int) {};
    REQUIRE(::sigaction(SIGUSR1, &quiet, &before) == 0);
    pthread_t const sleeper = ::pthread_self();
    std::atomic<bool> ended{false};
    std::thread caller([&] {
        while (!ended.load()) {
            ::pthread_kill(sleeper, SIGUSR1); // again and again: the first may come before the sleep
            std::this_thread::sleep_for(2ms);
        }
    });
    auto const begin = std::chrono::steady_clock::now();
    herring::detail::sleep_for(100s);
    ended.store(true);
    caller.join();
    ::sigaction(SIGUSR1, &before, nullptr);
    CHECK(std::chrono::steady_clock::now() - begin < 60s);
}

TEST_CASE("timespec_of: whole seconds and the rest") {
    timespec const span = herring::detail::timespec_of(3s + 250ms + 1ns);
    CHECK(span.tv_sec == 3);
    CHECK(span.tv_nsec == 250'000'001);
    timespec const under = herring::detail::timespec_of(999'999'999ns);
    CHECK(under.tv_sec == 0);
    CHECK(under.tv_nsec == 999'999'999);
}
