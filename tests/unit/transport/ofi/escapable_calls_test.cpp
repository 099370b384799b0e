// herring: calls that do not return: the core is given away, and the call is left once the world has failed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/ofi/escapable_calls.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>

using herring::errc;
using herring::failure;
using herring::world;
using herring::detail::escapable_calls;
using std::chrono::milliseconds;

namespace {

/// What a library does that waits for a lock whose holder is gone. At most 20 s, so that a test can fail.
[[maybe_unused]] long spin(std::atomic<bool> const& open) {
    auto const until = herring::clock::now() + std::chrono::seconds(20);
    while (!open.load()) {
        if (herring::clock::now() > until) return -7;
    }
    return 42;
}
/// Sets a lock free, or lets a world fail, after a while.
template <class Function> std::thread after(milliseconds delay, Function&& then) {
    return std::thread([delay, then] {
        std::this_thread::sleep_for(delay); // waits for nothing: makes the moment arbitrary
        then();
    });
}
[[maybe_unused]] void fail(world& w) { w.fail(failure::make(errc::peer_lost, 0, 1, "test", "it is gone")); }

[[maybe_unused]] double cpu_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}
/// The thread that took one gives it back when it wakes next.
[[maybe_unused]] bool all_real_time_signals_are_free() {
    auto const until = herring::clock::now() + std::chrono::seconds(5);
    for (int number = SIGRTMIN; number <= SIGRTMAX && herring::clock::now() < until;) {
        struct sigaction is {};
        if (::sigaction(number, nullptr, &is) != 0) return false;
        if (is.sa_handler == SIG_DFL)
            ++number;
        else
            std::this_thread::yield();
    }
    return herring::clock::now() < until;
}

} // namespace

TEST_CASE("way out: what returns, returns its result, with and without somebody who looks on") {
    world alone;
    for (bool const needed : {false, true}) {
        escapable_calls calls(alone, needed);
        for (long i = 0; i < 1000; ++i) REQUIRE(calls([i]() noexcept { return i; }) == i);
    }
}

#if HERRING_TEST_TSAN
TEST_CASE("way out: a call is left") {
    std::puts("SKIPPED: unit: the way out of a call, for ThreadSanitizer holds signals back");
}
#else

TEST_CASE("way out: who spins in a call is brought back once the world has failed") {
    world alone;
    std::atomic<bool> never{false};
    escapable_calls calls(alone, true);
    std::thread other = after(milliseconds(150), [&] { fail(alone); });
    auto const begin = herring::clock::now();
    long const result = calls([&]() noexcept { return spin(never); });
    auto const took = herring::clock::now() - begin;
    other.join();
    CHECK(result == escapable_calls::abandoned);
    CHECK(took >= milliseconds(150));
    CHECK(took < milliseconds(8'000));
    CHECK(all_real_time_signals_are_free());
    // It goes on to work, and leaves a second one as well.
    CHECK(calls([]() noexcept { return 5L; }) == 5);
    CHECK(calls([&]() noexcept { return spin(never); }) == escapable_calls::abandoned);
}

TEST_CASE("way out: in a world that is well a call keeps its result, and burns little") {
    world alone;
    std::atomic<bool> open{false};
    escapable_calls calls(alone, true);
    std::thread other = after(milliseconds(2'500), [&] { open.store(true); });
    double const before = cpu_ms();
    long const result = calls([&]() noexcept { return spin(open); });
    double const burnt = cpu_ms() - before;
    other.join();
    CHECK(result == 42);
    CHECK_MESSAGE(burnt < 1'250, "ms of CPU in a call of 2,500 ms: " << burnt);
}

TEST_CASE("way out: it takes no signal that the program handles") {
    world alone;
    std::atomic<bool> never{false};
    escapable_calls calls(alone, true);
    struct sigaction ours {
    }, before{};
    ours.sa_handler = [](int) {};
    ::sigaction(SIGRTMAX, &ours, &before);
    fail(alone);
    CHECK(calls([&]() noexcept { return spin(never); }) == escapable_calls::abandoned);
    struct sigaction now {};
    ::sigaction(SIGRTMAX, &before, &now);
    CHECK((now.sa_handler == ours.sa_handler));
    CHECK(all_real_time_signals_are_free());
}

TEST_CASE("way out: a thread that began with all signals blocked is brought back as well") {
    world alone;
    std::atomic<bool> never{false};
    escapable_calls calls(alone, true);
    CHECK(calls([]() noexcept { return 5L; }) == 5); // of another thread
    fail(alone);
    sigset_t every, before;
    ::sigfillset(&every);
    ::pthread_sigmask(SIG_SETMASK, &every, &before);
    std::thread caller(
        [&] { CHECK(calls([&]() noexcept { return spin(never); }) == escapable_calls::abandoned); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    caller.join();
}

TEST_CASE("way out: a signal that the program waits for stays the program's") {
    sigset_t own, before;
    ::sigemptyset(&own);
    ::sigaddset(&own, SIGRTMAX);
    ::pthread_sigmask(SIG_BLOCK, &own, &before);
    {
        world alone;
        std::atomic<bool> never{false};
        escapable_calls calls(alone, true);
        ::pthread_kill(::pthread_self(), SIGRTMAX);
        fail(alone);
        CHECK(calls([&]() noexcept { return spin(never); }) == escapable_calls::abandoned);
        timespec const now{};
        CHECK(::sigtimedwait(&own, nullptr, &now) == SIGRTMAX); // it is still pending
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("way out: a signal that is blocked later gives way to another, and ends nothing afterwards") {
    world alone;
    std::atomic<bool> never{false};
    escapable_calls calls(alone, true);
    CHECK(calls([]() noexcept { return 5L; }) == 5);
    sigset_t own, before;
    ::sigemptyset(&own);
    ::sigaddset(&own, SIGRTMAX);
    ::pthread_sigmask(SIG_BLOCK, &own, &before);
    fail(alone);
    CHECK(calls([&]() noexcept { return spin(never); }) == escapable_calls::abandoned);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr); // a pending one would end this process here
    CHECK(all_real_time_signals_are_free());
}
#endif
