// herring: tests of machine/threads.hpp: how one is started, and who is blocked.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/threads.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <atomic>
#include <initializer_list>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace {
struct seen {
    sigset_t blocked{};
    int calls = 0;
};
bool all_blocked(sigset_t const& mask) {
    for (int const number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM, SIGRTMAX})
        if (::sigismember(&mask, number) != 1) return false;
    return true;
}
} // namespace

TEST_CASE("start_thread: all signals are blocked in the thread, and none more in the caller") {
    sigset_t before, after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    REQUIRE_FALSE(all_blocked(before));
    seen found;
    pthread_t thread{};
    REQUIRE(herring::detail::start_thread(
                thread,
                [](void* self) -> void* {
                    auto& into = *static_cast<seen*>(self);
                    ::pthread_sigmask(SIG_SETMASK, nullptr, &into.blocked);
                    ++into.calls;
                    return self;
                },
                &found) == 0);
    void* result = nullptr;
    ::pthread_join(thread, &result);
    CHECK(result == &found);
    CHECK(found.calls == 1);
    CHECK(all_blocked(found.blocked));
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int number = 1; number < SIGRTMAX; ++number)
        CHECK(::sigismember(&before, number) == ::sigismember(&after, number));
}

TEST_CASE("start_thread: where it is refused the limit that may be the cause is named") {
    rlimit old{};
    REQUIRE(::getrlimit(RLIMIT_AS, &old) == 0);
    rlimit bounded = old;
    bounded.rlim_cur = rlim_t{1} << 47; // which refuses nothing
    if (bounded.rlim_cur > old.rlim_max) bounded.rlim_cur = old.rlim_max;
    REQUIRE(::setrlimit(RLIMIT_AS, &bounded) == 0);
    std::string const with_limit = herring::detail::thread_advice();
    REQUIRE(::setrlimit(RLIMIT_AS, &old) == 0);
    CHECK(with_limit.find("ulimit -v") != std::string::npos);
    CHECK(with_limit.find("ulimit -u") != std::string::npos);
    if (old.rlim_cur != RLIM_INFINITY) return;
    std::string const without = herring::detail::thread_advice();
    CHECK(without.find("ulimit -v") == std::string::npos);
    CHECK(without.find("ulimit -u") != std::string::npos);
}

using herring::detail::blocked_threads;

namespace {
bool all() { return blocked_threads::are_all(blocked_threads::mark()); }

/// In a child, whose only thread is this one. Returns 0, or the number of what does not hold.
int in_child() {
    if (all()) return 1; // this one runs
    blocked_threads::waiting(1);
    if (!all() || blocked_threads::waits_in(blocked_threads::mark()) != 1) return 2;
    auto const before = blocked_threads::mark();
    blocked_threads::waiting(-1);
    if (all()) return 3;
    blocked_threads::waiting(1);
    if (blocked_threads::mark() == before) return 4; // it has run in between
    std::atomic<int> stage{0};
    std::thread second([&] {
        stage = 1;
        while (stage == 1) std::this_thread::yield();
    });
    while (stage == 0) std::this_thread::yield();
    if (all()) return 5; // a thread of the program's
    blocked_threads::own(1);
    if (!all()) return 6; // of Herring's
    // A child has neither of them.
    pid_t const child = ::fork();
    if (child == 0) {
        blocked_threads::waiting(-1); // of nobody
        if (all()) ::_exit(1);
        blocked_threads::waiting(1);
        ::_exit(all() ? 0 : 2);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    blocked_threads::own(-1);
    stage = 2;
    second.join();
    return WIFEXITED(status) ? 10 * WEXITSTATUS(status) : 7;
}
} // namespace

// ThreadSanitizer has a thread of its own in every process, which never waits.
TEST_CASE("blocked_threads: all of the process, or not" * doctest::skip(HERRING_TEST_TSAN != 0)) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(in_child());
    int status = 1;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
