// herring: tests of machine/threads.hpp: all threads of the process, or not; a forked child begins anew.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/threads.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <atomic>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

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
