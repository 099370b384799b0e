// herring: the lock of a frontend.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_driver.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <thread>
#include <vector>

namespace ensemble_frontend_lock_test {

using herring::detail::ensembles::frontend_lock;

TEST_CASE("ensemble frontend_lock: one at a time") {
    frontend_lock lock;
    long count = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
        all.emplace_back([&] {
            for (int i = 0; i < 5000; ++i) {
                frontend_lock::guard const held(lock);
                ++count;
            }
        });
    for (auto& t : all) t.join();
    CHECK(count == 20000);
    CHECK(!lock.is_wanted());
}

TEST_CASE("ensemble frontend_lock: who polls under it sees who wants it, and lets them in") {
    frontend_lock lock;
    bool was_in = false;
    lock.lock();
    std::thread other([&] {
        frontend_lock::guard const held(lock);
        was_in = true;
    });
    while (!was_in)
        if (lock.is_wanted()) lock.let_others_in();
    lock.unlock();
    other.join();
    CHECK(was_in);
}

} // namespace ensemble_frontend_lock_test
