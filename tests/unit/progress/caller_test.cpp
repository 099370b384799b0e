// herring: tests of progress/progress.hpp: caller.
// SPDX-License-Identifier: Apache-2.0
#include "herring/progress/progress.hpp"

#include "doctest/doctest.h"

TEST_CASE("caller: no thread") {
    CHECK_FALSE(herring::progress::caller::facts.background);
    CHECK(std::is_empty_v<herring::progress::caller>);
}
