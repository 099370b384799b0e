// herring: tests of model/topology.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/topology.hpp"

#include "doctest/doctest.h"

#include <string_view>

TEST_CASE("role: a rank is a worker if nothing is said, and roles have names") {
    CHECK(herring::role{} == herring::role::worker);
    CHECK(to_string(herring::role::worker) == std::string_view("worker"));
    CHECK(to_string(herring::role::server) == std::string_view("server"));
}
