// herring: tests of placement/placement.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/placement/placement.hpp"

#include "doctest/doctest.h"

namespace {
struct two_servers {
    using axis = herring::axes::placement;
    static constexpr int servers(int nodes) noexcept { return nodes < 2 ? nodes : 2; }
    static constexpr int node_of(int server, int nodes) noexcept { return nodes - 1 - server; }
};
struct of_another_axis : two_servers {
    using axis = herring::axes::sharding;
};
struct nameless_nodes {
    using axis = herring::axes::placement;
    static constexpr int servers(int nodes) noexcept { return nodes; }
};
struct may_throw : two_servers {
    static int node_of(int, int) { return 0; }
};
} // namespace

TEST_CASE("placement: the concept") {
    CHECK(herring::placement_policy<two_servers>);
    CHECK_FALSE(herring::placement_policy<of_another_axis>);
    CHECK_FALSE(herring::placement_policy<nameless_nodes>);
    CHECK_FALSE(herring::placement_policy<may_throw>);
    CHECK(herring::check<herring::axes::placement, two_servers>::value);
}
