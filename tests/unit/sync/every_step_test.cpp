// herring: tests of sync/every_step.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/every_step.hpp"

#include "doctest/doctest.h"

TEST_CASE("every_step: every step") {
    static_assert(herring::sync::every_step::due(0));
    for (std::uint64_t const step :
         {std::uint64_t(0), std::uint64_t(1), std::uint64_t(1000), ~std::uint64_t(0)})
        CHECK(herring::sync::every_step::due(step));
    CHECK(std::is_empty_v<herring::sync::every_step>);
}
