// herring: tests of machine/monitor.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/monitor.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using herring::detail::monitor;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

TEST_CASE("monitor: one thread at a time holds the lock") {
    monitor lock;
    std::atomic<int> count{0}; // updates get lost without the lock
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 20'000; ++i) {
                monitor::guard const held(lock);
                count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(count == 80'000);
}

TEST_CASE("monitor: a wait ends at its deadline, and not before, if nobody notifies") {
    monitor lock;
    monitor::guard const held(lock);
    clock_type::time_point const deadline = clock_type::now() + 20ms;
    while (lock.wait_until(deadline)) { // spurious
    }
    CHECK(clock_type::now() >= deadline);
    CHECK_FALSE(lock.wait_until(clock_type::now() - 1s));
}

TEST_CASE("monitor: a notification ends every wait, which releases the lock meanwhile") {
    monitor lock;
    int waiting = 0, woken = 0;
    bool changed = false;
    clock_type::time_point const deadline = clock_type::now() + 60s;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            monitor::guard const held(lock);
            ++waiting;
            while (!changed)
                if (!lock.wait_until(deadline)) return;
            ++woken;
        });
    for (bool all = false; !all;) { // they wait once all have had the lock
        {
            monitor::guard const held(lock);
            all = waiting == 3;
            if (all) changed = true;
        }
        std::this_thread::yield();
    }
    lock.notify_all();
    for (std::thread& thread : threads) thread.join();
    CHECK(woken == 3);
    CHECK(clock_type::now() < deadline);
}
