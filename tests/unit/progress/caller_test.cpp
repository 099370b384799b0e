// herring: tests of progress/caller.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/progress/caller.hpp"

#include "doctest/doctest.h"

TEST_CASE("caller: no thread") {
    CHECK_FALSE(herring::progress::caller::facts.background);
    CHECK(std::is_empty_v<herring::progress::caller>);
}
