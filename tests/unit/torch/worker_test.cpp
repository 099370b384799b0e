// herring: tests of torch/worker.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/torch/worker.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct job {
    std::function<void()> what;
    void run() const noexcept { what(); }
};
using worker = herring::torch::worker<std::shared_ptr<job>>;
std::shared_ptr<job> of(std::function<void()> what) { return std::make_shared<job>(job{std::move(what)}); }

/// A door that a task waits at.
class door {
  public:
    void open() {
        std::lock_guard const lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    void pass() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return open_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

std::chrono::steady_clock::time_point in_a_minute() {
    return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

TEST_CASE("worker: a task runs in the caller's thread where none is before it") {
    worker one;
    std::thread::id where{};
    CHECK(one.take(of([&] { where = std::this_thread::get_id(); }), true) == worker::taken::done);
    CHECK(where == std::this_thread::get_id());
}

TEST_CASE("worker: tasks run one at a time, in the order of the calls, also one that may run here") {
    door held;
    worker one;
    std::vector<int> order;
    bool elsewhere = false;
    auto const caller = std::this_thread::get_id();
    CHECK(one.take(of([&] {
                       held.pass();
                       order.push_back(0);
                       elsewhere = std::this_thread::get_id() != caller;
                   }),
                   false) == worker::taken::queued);
    for (int i = 1; i < 20; ++i)
        CHECK(one.take(of([&order, i] { order.push_back(i); }), i % 2 == 0) == worker::taken::queued);
    held.open();
    CHECK(one.drain(in_a_minute()));
    CHECK(elsewhere);
    REQUIRE(order.size() == 20);
    for (int i = 0; i < 20; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("worker: what runs in a caller's thread holds up what is queued by others") {
    door held;
    worker one;
    std::vector<int> order;
    std::thread other([&] {
        one.take(of([&] {
                     held.pass();
                     order.push_back(0);
                 }),
                 true);
    });
    while (one.running().task == nullptr) std::this_thread::yield();
    CHECK(one.take(of([&] { order.push_back(1); }), true) == worker::taken::queued);
    CHECK_FALSE(one.drain(std::chrono::steady_clock::now()));
    held.open();
    other.join();
    CHECK(one.drain(in_a_minute()));
    CHECK(order == std::vector<int>{0, 1});
}

TEST_CASE("worker: it says what runs, and since when") {
    door held;
    worker one;
    CHECK(one.running().task == nullptr);
    auto const task = of([&] { held.pass(); });
    one.take(task, false);
    while (one.running().task == nullptr) std::this_thread::yield();
    CHECK(one.running().task == task);
    CHECK(one.running().since <= std::chrono::steady_clock::now());
    held.open();
    CHECK(one.drain(in_a_minute()));
    CHECK(one.running().task == nullptr);
}

TEST_CASE("worker: a task that a running one takes runs at once, before those of the queue") {
    door held;
    worker one;
    std::vector<int> order;
    std::vector<std::uint64_t> numbers;
    auto const note = [&](int what) {
        order.push_back(what);
        numbers.push_back(one.running().number);
    };
    one.take(of([&] {
                 held.pass();
                 note(0);
                 CHECK(one.take(of([&] { note(1); }), false) == worker::taken::done);
                 CHECK(one.take(of([&] { note(2); }), true) == worker::taken::done);
                 note(3);
             }),
             false);
    CHECK(one.take(of([&] { note(4); }), false) == worker::taken::queued);
    held.open();
    CHECK(one.drain(in_a_minute()));
    CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(numbers == std::vector<std::uint64_t>{1, 2, 3, 1, 4});
}

TEST_CASE("worker: a thread knows whose tasks it is in, one within another") {
    worker one, other;
    std::vector<bool> in;
    auto const note = [&] {
        in.push_back(worker::within(&one));
        in.push_back(worker::within(&other));
    };
    note();
    one.take(of([&] {
                 note();
                 other.take(of([&] {
                                note();
                                CHECK(one.take(of(note), false) == worker::taken::done);
                            }),
                            true);
                 note();
             }),
             true);
    note();
    CHECK(in ==
          std::vector<bool>{false, false, true, false, true, true, true, true, true, false, false, false});
}

TEST_CASE("worker: closed it refuses tasks, runs those that are queued, and lets them go") {
    int ran = 0;
    auto const task = of([&] { ++ran; });
    {
        door held;
        worker one;
        one.take(of([&] {
                     held.pass();
                     one.take(of([&] { ++ran; }), false); // a task's own
                 }),
                 false);
        one.take(task, false);
        one.close();
        CHECK(one.take(task, true) == worker::taken::refused);
        CHECK(one.take(task, false) == worker::taken::refused);
        held.open();
    }
    CHECK(ran == 2);
    CHECK(task.use_count() == 1);
}

} // namespace
