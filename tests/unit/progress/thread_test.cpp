// herring: tests of progress/progress.hpp: thread.
// SPDX-License-Identifier: Apache-2.0
#include "herring/progress/progress.hpp"

#include "doctest/doctest.h"

TEST_CASE("thread: a thread") {
    CHECK(herring::progress::thread::facts.background);
    CHECK(std::is_empty_v<herring::progress::thread>);
}
