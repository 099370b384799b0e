// herring: tests of placement/colocated.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/placement/colocated.hpp"

#include "doctest/doctest.h"

#include <type_traits>

TEST_CASE("colocated: one server a node, on its node") {
    for (int nodes = 1; nodes <= 64; ++nodes) {
        REQUIRE(herring::placement::colocated::servers(nodes) == nodes);
        for (int server = 0; server < nodes; ++server)
            REQUIRE(herring::placement::colocated::node_of(server, nodes) == server);
    }
    CHECK(std::is_empty_v<herring::placement::colocated>);
    static_assert(herring::placement::colocated::servers(4) == 4);
}
