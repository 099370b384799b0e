// herring: tests of machine/threads.hpp: no signal reaches the thread, and the caller's mask stays.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/threads.hpp"

#include "doctest/doctest.h"

#include <initializer_list>
#include <string>

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
