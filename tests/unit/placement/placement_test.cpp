// herring: tests of placement/placement.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/placement/placement.hpp"

#include "doctest/doctest.h"

#include <type_traits>

namespace {
struct first_serves {
    using axis = herring::axes::placement;
    static constexpr herring::placement_facts facts{.dedicated_servers = true};
    static herring::roles assign(herring::topology const& map) {
        herring::roles all = herring::roles::both(map.nodes());
        all.servers = {0};
        return all;
    }
};
struct of_another_axis : first_serves {
    using axis = herring::axes::sharding;
};
struct without_facts {
    using axis = herring::axes::placement;
    static herring::roles assign(herring::topology const& map) { return herring::roles::both(map.nodes()); }
};
struct by_the_number_of_nodes : first_serves {
    static herring::roles assign(int nodes) { return herring::roles::both(nodes); }
};
struct returns_nodes : first_serves {
    static std::vector<int> assign(herring::topology const&) { return {}; }
};
} // namespace

TEST_CASE("placement: the concept") {
    CHECK(herring::placement_policy<first_serves>);
    CHECK_FALSE(herring::placement_policy<of_another_axis>);
    CHECK_FALSE(herring::placement_policy<without_facts>);
    CHECK_FALSE(herring::placement_policy<by_the_number_of_nodes>);
    CHECK_FALSE(herring::placement_policy<returns_nodes>);
    CHECK(herring::check<herring::axes::placement, first_serves>::value);
}

TEST_CASE("colocated: every node contributes and serves, number n of each on node n") {
    for (int nodes = 1; nodes <= 64; ++nodes) {
        herring::topology const map = herring::topology::uniform(nodes, 2);
        herring::roles const all = herring::placement::colocated::assign(map);
        REQUIRE(all.server_count() == nodes);
        REQUIRE(all.contributor_count() == nodes);
        for (int n = 0; n < nodes; ++n) {
            REQUIRE(all.server(n) == herring::server_id{n});
            REQUIRE(all.contributor(n) == herring::contributor_id{n});
            REQUIRE(all.share({n}) == 1);
        }
        CHECK(all.contributing_ranks(map) == 2 * nodes);
    }
    CHECK(std::is_empty_v<herring::placement::colocated>);
    static_assert(herring::placement::colocated::assign(herring::topology::uniform(4, 1)).server_count() ==
                  4);
    static_assert(!herring::placement::colocated::facts.dedicated_servers);
}
