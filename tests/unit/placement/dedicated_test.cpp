// herring: tests of placement/dedicated.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/placement/dedicated.hpp"

#include "doctest/doctest.h"

#include <type_traits>
#include <vector>

using herring::role;

TEST_CASE("dedicated: workers' nodes contribute, and each rank that is a server serves") {
    std::vector<role> roles;
    for (char const c : {'w', 's', 'w', 'w', 's', 's'})
        roles.push_back(c == 's' ? role::server : role::worker);
    herring::topology const map(std::vector<int>{7, 7, 7, 3, 3, 7}, roles);
    herring::roles const all = herring::placement::dedicated::assign(map);
    CHECK(all.contributors == std::vector<int>{0, 2});
    CHECK(all.servers == std::vector<int>{1, 3, 4});
    CHECK(all.shares.empty());
    CHECK(all.contributing_ranks(map) == 3);
    CHECK(herring::detail::defect_of(all, map, true).what == nullptr);
    CHECK(herring::placement::dedicated::assign(herring::topology::uniform(2, 1)).servers.empty());
    CHECK(std::is_empty_v<herring::placement::dedicated>);
    static_assert(herring::placement::dedicated::facts.dedicated_servers);
    static_assert(
        herring::placement::dedicated::assign(herring::topology({0, 1}, {role::worker, role::server}))
            .server_count() == 1);
}
