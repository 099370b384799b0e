// herring: tests of progress/thread.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/progress/thread.hpp"

#include "doctest/doctest.h"

TEST_CASE("thread: a thread") {
    CHECK(herring::progress::thread::facts.background);
    CHECK(std::is_empty_v<herring::progress::thread>);
}
