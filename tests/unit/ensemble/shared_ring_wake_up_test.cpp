// herring: tests of ensemble/shared_ring.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/shared_ring.hpp"

#include "shared_lane_pair.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace ensemble_wake_up_socket_test {

using herring::detail::ensembles::sleep_flag;
using herring::detail::ensembles::sleeper;
using herring::detail::ensembles::wake_up_socket;
using herring::detail::ensembles::waker;

bool readable(int file) {
    pollfd one{file, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

TEST_CASE("wake_up_socket: it is heard once for each time that it was rung, some at once") {
    shared_lane_pair::bells both;
    wake_up_socket mine(std::move(both.frontend)), other(std::move(both.member));
    CHECK(mine.drain() == 0);
    CHECK_FALSE(readable(mine.descriptor()));
    for (int i = 0; i < wake_up_socket::most_at_once + 3; ++i) other.wake();
    CHECK(readable(mine.descriptor()));
    CHECK(mine.drain() == wake_up_socket::most_at_once);
    CHECK(readable(mine.descriptor()));
    CHECK(mine.drain() == 3);
    CHECK_FALSE(readable(mine.descriptor()));
    CHECK_FALSE(mine.is_closed());
}

TEST_CASE("wake_up_socket: one that nobody answers is full some time, and goes on ringing") {
    shared_lane_pair::bells both;
    wake_up_socket mine(std::move(both.frontend)), other(std::move(both.member));
    for (int i = 0; i < 100000; ++i) other.wake();
    CHECK_FALSE(other.is_closed());
    CHECK(readable(mine.descriptor()));
}

TEST_CASE("wake_up_socket: either end sees that the other is closed, after what was rung before") {
    shared_lane_pair::bells both;
    {
        wake_up_socket mine(std::move(both.frontend));
        {
            wake_up_socket other(std::move(both.member));
            other.wake();
        }
        CHECK(mine.drain() == 1);
        CHECK(mine.is_closed());
    }
    shared_lane_pair::bells more;
    wake_up_socket mine(std::move(more.frontend));
    more.member = herring::detail::descriptor();
    mine.wake();
    CHECK(mine.is_closed());
}

TEST_CASE("wake_up_socket: who publishes rings once for each sleep of the other end") {
    auto const flag = std::make_unique<sleep_flag>();
    sleeper one(*flag);
    waker other(*flag);
    CHECK_FALSE(other.must_wake());
    CHECK(one.try_sleep([] { return false; }));
    CHECK(one.sleeps());
    CHECK(other.must_wake());
    CHECK_FALSE(other.must_wake());
    one.awake();
    CHECK_FALSE(other.must_wake());
    CHECK(one.try_sleep([] { return false; }));
    CHECK(other.must_wake());
    one.awake();
    CHECK_FALSE(one.try_sleep([] { return true; }));
    CHECK_FALSE(one.sleeps());
    CHECK_FALSE(other.must_wake());
}

TEST_CASE("wake_up_socket: who goes to sleep has said so before it looks for the last time") {
    auto const flag = std::make_unique<sleep_flag>();
    sleeper one(*flag);
    std::uint32_t seen = 0;
    CHECK(one.try_sleep([&] {
        seen = flag->epoch;
        return false;
    }));
    CHECK(seen == 1);
}

TEST_CASE("wake_up_socket: a flag that an end left behind is that of an end that is awake") {
    auto const flag = std::make_unique<sleep_flag>();
    {
        sleeper gone(*flag);
        CHECK(gone.try_sleep([] { return false; }));
    }
    sleeper next(*flag);
    waker other(*flag);
    CHECK_FALSE(other.must_wake());
    CHECK(next.try_sleep([] { return false; }));
    CHECK(other.must_wake());
}

// Store, then load, on both sides: not both can miss the other's.
TEST_CASE("wake_up_socket: who goes to sleep sees what was published, or is rung for") {
    auto const flag = std::make_unique<sleep_flag>();
    struct alignas(64) line {
        std::atomic<int> value{0};
    };
    auto const published = std::make_unique<line>(), turn = std::make_unique<line>(),
               done = std::make_unique<line>();
    constexpr int rounds = 20000;
    bool rung = false;
    std::thread other([&] {
        waker wakes(*flag);
        for (int round = 1; round <= rounds; ++round) {
            while (turn->value.load(std::memory_order_acquire) != round) std::this_thread::yield();
            for (int i = 0; i < round % 37; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
            published->value.store(round, std::memory_order_seq_cst);
            rung = wakes.must_wake();
            done->value.store(round, std::memory_order_release);
        }
    });
    sleeper sleeps(*flag);
    int lost = 0;
    for (int round = 1; round <= rounds; ++round) {
        turn->value.store(round, std::memory_order_release);
        for (int i = 0; i < round % 101; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        bool const asleep =
            sleeps.try_sleep([&] { return published->value.load(std::memory_order_seq_cst) == round; });
        while (done->value.load(std::memory_order_acquire) != round) std::this_thread::yield();
        lost += asleep && !rung;
        sleeps.awake();
    }
    other.join();
    CHECK(lost == 0);
}

} // namespace ensemble_wake_up_socket_test
