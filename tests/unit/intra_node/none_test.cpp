// herring: tests of intra_node::none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/intra_node/intra_node.hpp"

#include "doctest/doctest.h"

#include <algorithm>

TEST_CASE("none: zeroed memory of one's own, and nobody to wait for") {
    herring::world alone;
    herring::intra_node::none node(alone, 10'000);
    REQUIRE(node.memory() != nullptr);
    CHECK(std::all_of(node.memory(), node.memory() + 10'000, [](std::byte b) { return b == std::byte{0}; }));
    CHECK(node.peer(0, node.memory() + 5) == node.memory() + 5);
    CHECK(node.first_not_arrived(0) == -1);
    CHECK(node.first_not_finished(7) == -1);
    CHECK_FALSE(node.has_left(0));
    herring::intra_node::none empty(alone, 0);
    CHECK(empty.memory() == nullptr);
}
