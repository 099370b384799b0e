// herring: tests of gaps/worker.hpp: what is a task, and what is not.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gaps/worker.hpp"

#include "doctest/doctest.h"

namespace gap_task_test {

struct complete {
    std::chrono::microseconds quantum() const noexcept { return std::chrono::microseconds(5); }
    bool next() noexcept { return ++done < 3; }
    int done = 0;
};
struct may_throw {
    std::chrono::nanoseconds quantum() noexcept { return {}; }
    bool next() { return false; }
};
struct plain_number {
    long quantum() noexcept { return 5; }
    bool next() noexcept { return false; }
};
struct returns_nothing {
    std::chrono::nanoseconds quantum() noexcept { return {}; }
    void next() noexcept {}
};

static_assert(herring::gap_task<complete>);
static_assert(!herring::gap_task<may_throw>);
static_assert(!herring::gap_task<plain_number>); // of which unit?
static_assert(!herring::gap_task<returns_nothing>);

TEST_CASE("gap_task: is asked for one quantum at a time") {
    complete task;
    CHECK(task.next());
    CHECK(task.next());
    CHECK(!task.next());
}

} // namespace gap_task_test
