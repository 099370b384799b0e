// herring: tests of placement/placement.hpp: colocated.
// SPDX-License-Identifier: Apache-2.0
#include "herring/placement/placement.hpp"

#include "doctest/doctest.h"

#include <type_traits>

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
        CHECK(all.all_have_both(map));
    }
    CHECK(std::is_empty_v<herring::placement::colocated>);
    static_assert(herring::placement::colocated::assign(herring::topology::uniform(4, 1)).server_count() ==
                  4);
    static_assert(!herring::placement::colocated::facts.dedicated_servers);
}
