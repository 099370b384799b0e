// herring: tests of sync/sync.hpp: the default is empty, and by itself a model.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/sync.hpp"

#include "doctest/doctest.h"

#include <type_traits>

TEST_CASE("every_step: empty") {
    CHECK(std::is_empty_v<herring::sync::every_step>);
    CHECK(herring::policy_name<herring::sync::every_step>() == "every_step");
}
