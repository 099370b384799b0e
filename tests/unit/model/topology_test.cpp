// herring: tests of model/topology.hpp: which ranks share a node (numbering, tables, constant expressions), and roles.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/topology.hpp"

#include "doctest/doctest.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using herring::topology;

constexpr bool usable_in_constant_expressions() {
    topology const map(std::vector<int>{7, 3, 7, 7, 3, 9});
    return map.size() == 6 && map.nodes() == 3 && map.node(1) == 1 && map.local_rank(3) == 2 &&
           map.local_size(0) == 3 && map.rank_of(1, 1) == 4 && map.members(2)[0] == 5 &&
           map.largest_node() == 3 && map.smallest_node() == 1 && map.flat().nodes() == 6;
}
static_assert(usable_in_constant_expressions());

/// What must hold of every topology, whatever it was made from.
void consistent(topology const& map) {
    int ranks = 0;
    int next_node = 0;
    for (int r = 0; r < map.size(); ++r) {
        CHECK(map.node(r) <= next_node); // dense, in the order of first ranks
        if (map.node(r) == next_node) ++next_node;
        CHECK(map.rank_of(map.node(r), map.local_rank(r)) == r);
    }
    CHECK(next_node == map.nodes());
    for (int n = 0; n < map.nodes(); ++n) {
        CHECK(static_cast<int>(map.members(n).size()) == map.local_size(n));
        CHECK(map.local_size(n) <= map.largest_node());
        CHECK(map.local_size(n) >= map.smallest_node());
        int before = -1;
        for (int const r : map.members(n)) {
            CHECK(r > before);
            CHECK(map.node(r) == n);
            before = r;
            ++ranks;
        }
    }
    CHECK(ranks == map.size());
}

} // namespace

TEST_CASE("topology: a default one is one rank on one node") {
    topology const alone;
    CHECK(alone.size() == 1);
    CHECK(alone.nodes() == 1);
    CHECK(alone.local_size(0) == 1);
    consistent(alone);
}

TEST_CASE("topology: nodes are numbered by the first rank that has them") {
    topology const map(std::vector<int>{5, -1, 5, 100, -1});
    CHECK(map.node_of == std::vector<int>{0, 1, 0, 2, 1});
    CHECK(map.same_node(0, 2));
    CHECK_FALSE(map.same_node(0, 1));
    consistent(map);
}

TEST_CASE("topology: names and numbers of the same nodes give the same topology") {
    std::vector<std::string> const names{"b", "a", "b", "c", "a"};
    CHECK(topology::of_names(names) == topology(std::vector<int>{5, -1, 5, 100, -1}));
}

TEST_CASE("topology: a server is a node of its own, and workers are numbered without servers") {
    std::vector<herring::role> roles;
    for (char const c : std::string("wsswws"))
        roles.push_back(c == 's' ? herring::role::server : herring::role::worker);
    std::vector<int> const rates{0, 40, 0, 0, 0, 10};
    topology const map({8, 8, 8, 8, 3, 3}, roles, rates);
    CHECK(map.node_of == std::vector<int>{0, 1, 2, 0, 3, 4});
    CHECK(map.workers() == 3);
    CHECK(map.servers() == 3);
    CHECK(map.largest_node() == 2);
    int const workers[] = {0, -1, -1, 1, 2, -1};
    for (int r = 0; r < map.size(); ++r) {
        CHECK(map.worker(r) == workers[r]);
        CHECK(map.is_server(r) == (workers[r] < 0));
        CHECK(map.is_server_node(map.node(r)) == map.is_server(r));
    }
    CHECK(map.rate(1) == 40);
    CHECK(map.rate(0) == 0);
    consistent(map);
    for (int r = 0; r < map.size(); ++r) CHECK(map.flat().is_server(r) == map.is_server(r));
    CHECK(map.flat().workers() == 3);
    CHECK(map.flat().rate(5) == 10);
    CHECK_FALSE(map == topology({0, 1, 2, 0, 3, 4}));
    std::vector<std::string> const names{"a", "a", "a", "a", "b", "b"};
    CHECK(topology::of_names(names, roles, rates) == map);
    // All workers, said or not, without a rate.
    CHECK(topology({0, 1, 1}, {herring::role::worker, herring::role::worker, herring::role::worker},
                   {0, 0, 0}) == topology({0, 1, 1}));
    CHECK(topology({0, 1, 1}).worker(2) == 2);
    CHECK(topology({0, 1, 1}).workers() == 3);
}

TEST_CASE("topology: nodes are numbered rack by rack, in the order of first ranks") {
    //                        node   a  b  c  b  d  e      rack  x: a, c   y: b, d   z: e
    topology const map({0, 1, 2, 1, 3, 4}, {}, {}, {7, 9, 7, 9, 9, 5});
    CHECK(map.node_of == std::vector<int>{0, 2, 1, 2, 3, 4});
    CHECK(map.racks() == 3);
    int const racks[] = {0, 0, 1, 1, 2};
    for (int n = 0; n < map.nodes(); ++n) CHECK(map.rack(n) == racks[n]);
    CHECK(map.members(2).size() == 2);
    CHECK(map.members(2)[1] == 3);
    CHECK_FALSE(map == topology({0, 2, 1, 2, 3, 4}));
    topology const flat = map.flat();
    CHECK(flat.node_of == std::vector<int>{0, 2, 1, 3, 4, 5});
    CHECK(flat.racks() == 3);
    CHECK(flat.rack(1) == 0);
    CHECK(flat.rack(4) == 1);
    int const some[] = {5, 4, 1};
    topology const group = map.subset(some);
    CHECK(group.racks() == 2);
    CHECK(group.node_of == std::vector<int>{0, 1, 2});
    CHECK(group.rack(0) == 0);
    CHECK(group.rack(2) == 1);
    // One rack is as none.
    CHECK(topology({0, 1, 1}, {}, {}, {4, 4, 4}) == topology({0, 1, 1}));
    CHECK(topology({0, 1, 1}).racks() == 1);
    CHECK(topology({0, 1, 1}).rack(1) == 0);
    std::vector<std::string> const names{"a", "b", "c", "b", "d", "e"};
    CHECK(topology::of_names(names, {}, {}, std::vector<int>{7, 9, 7, 9, 9, 5}) == map);
    // A server on a worker's machine is a node, which may be in another rack.
    using herring::role;
    topology const served({0, 0, 1}, {role::worker, role::server, role::worker}, {}, {1, 2, 1});
    CHECK(served.node_of == std::vector<int>{0, 2, 1});
    CHECK(served.is_server_node(2));
}

TEST_CASE("topology: uniform, flat and uneven ones are consistent at every size") {
    for (int nodes = 1; nodes <= 8; ++nodes) {
        for (int local = 1; local <= 8; ++local) {
            topology const map = topology::uniform(nodes, local);
            CHECK(map.size() == nodes * local);
            CHECK(map.nodes() == nodes);
            CHECK(map.largest_node() == local);
            CHECK(map.smallest_node() == local);
            consistent(map);
            CHECK(map.flat().nodes() == map.size());
            CHECK(map.flat().size() == map.size());
            consistent(map.flat());
        }
    }
    std::vector<int> ids;
    for (int r = 0; r < 50; ++r) ids.push_back(r * r % 7);
    consistent(topology(ids));
}

TEST_CASE("topology: a subset numbers nodes anew, in the order of the ranks that it is given") {
    topology const map({0, 0, 1, 1, 2}, {}, {5, 0, 7, 7, 9});
    int const some[] = {4, 3, 1, 2};
    topology const part = map.subset(some);
    consistent(part);
    CHECK(part == topology({0, 1, 2, 1}, {}, {9, 7, 0, 7}));
    CHECK((part.rate(0) == 9 && part.rate(1) == 7 && part.rate(2) == 0));
    CHECK(map.subset({}).size() == 0);
    int const all[] = {0, 1, 2, 3, 4};
    CHECK(map.subset(all) == map);
    CHECK(topology::uniform(2, 2).subset(std::span<int const>(all, 3)) == topology({0, 0, 1}));
}

TEST_CASE("role: a rank is a worker if nothing is said, and roles have names") {
    CHECK(herring::role{} == herring::role::worker);
    CHECK(to_string(herring::role::worker) == std::string_view("worker"));
    CHECK(to_string(herring::role::server) == std::string_view("server"));
}
