// herring: tests of plan/division.hpp by example; what a sharding policy does wrong is in plan_test.cpp, where buckets have numbers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/division.hpp"

#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <vector>

using namespace herring;
namespace detail = herring::detail;

TEST_CASE(
    "division: a shard has chunks of whole cache lines, and one for each local rank where there is room") {
    shard const two = detail::cut(64, 1600, server_id{1}, 1024, 16, 1);
    CHECK(two.offset == 64);
    CHECK(two.server == server_id{1});
    CHECK(two.chunks == 2);
    CHECK(two.chunk_elements == 800);
    shard const four = detail::cut(0, 1600, server_id{0}, 1024, 16, 4);
    CHECK(four.chunks == 4);
    CHECK(four.chunk_elements == 400);
    CHECK(detail::cut(0, 20, server_id{0}, 1024, 16, 4).chunks == 2);
    CHECK(detail::cut(0, 0, server_id{0}, 1024, 16, 4).chunks == 0);
    CHECK(detail::cut(0, 1000, server_id{0}, 100, 16, 1).chunk_elements == 96); // no more than 100
}

TEST_CASE("division: parts of a split bucket are even, and have the tensors that reach into them") {
    CHECK(detail::split_elements(2544, 1024, 16) == 848);
    CHECK(detail::split_elements(1024, 1024, 16) == 1024);
    CHECK(detail::split_elements(5000, 0, 16) == 5000);
    std::vector<bucket_tensor> const tensors{{3, 0, 16}, {4, 16, 2512}, {5, 2528, 0}};
    std::vector<bucket_tensor> part;
    detail::range_of(tensors, 0, 848, part);
    REQUIRE(part.size() == 2);
    CHECK(part[1].index == 4);
    CHECK(part[1].offset == 16);
    CHECK(part[1].elements == 832);
    detail::range_of(tensors, 1696, 832, part);
    REQUIRE(part.size() == 2); // the empty one is behind all
    CHECK(part[0].offset == 0);
    CHECK(part[1].index == 5);
}

TEST_CASE(
    "division: of a bucket by two hops the servers have shards, one behind the other, with dense chunks") {
    route_limits facts;
    facts.element_bytes = facts.parts.element_bytes = 4;
    facts.line_elements = 16;
    facts.nodes = 3;
    facts.tuning.chunk_bytes = 1024;
    facts.tuning.one_hop_bytes = 256;
    for (int n = 0; n < 3; ++n) {
        facts.roles.contributors.push_back(n);
        facts.roles.servers.push_back(n);
    }
    std::vector<bucket_tensor> const tensors{{0, 0, 1600}};
    std::vector<shard> shards(2); // of another bucket
    bucket result;
    detail::divide<sharding::balanced>(result, {1600, 16, tensors}, facts, shards, {});
    CHECK(result.path == route::two_hop);
    CHECK(result.elements == 1600);
    CHECK(result.first_shard == 2);
    REQUIRE(result.shards == 3);
    std::size_t next = 0;
    std::uint32_t chunks = 0;
    for (int s = 0; s < 3; ++s) {
        shard const& one = shards[static_cast<std::size_t>(2 + s)];
        CHECK(one.offset == next);
        CHECK(one.first_chunk == chunks);
        CHECK(one.server == server_id{s});
        next += one.elements;
        chunks += one.chunks;
    }
    CHECK(next == 1600);
    CHECK(result.chunks == chunks);

    detail::divide<sharding::balanced>(result, {16, 16, tensors}, facts, shards, {});
    CHECK(result.path == route::one_hop);
    REQUIRE(result.shards == 1);
    CHECK(shards.back().server == server_id{}); // every node sums for itself
}

TEST_CASE("division: small buckets go round in the proportion of shares, however fine their units are") {
    roles of;
    for (int const share : {100'000, 300'000, 200'000}) {
        of.servers.push_back(static_cast<int>(of.servers.size()));
        of.shares.push_back(share);
    }
    detail::server_loads loads(of);
    int buckets[3] = {};
    for (int n = 0; n < 60; ++n) {
        server_id const to = loads.least();
        ++buckets[to.place()];
        std::vector<shard> const shards{{.elements = 4096, .server = to}};
        loads.add({.first_shard = 0, .shards = 1, .path = route::two_hop}, shards);
    }
    CHECK(buckets[0] == 10);
    CHECK(buckets[1] == 30);
    CHECK(buckets[2] == 20);
}

TEST_CASE("division: small buckets go to the server that has least for its share") {
    roles of;
    for (int n = 0; n < 3; ++n) of.servers.push_back(n);
    detail::server_loads loads(of);
    std::vector<shard> shards{{.elements = 100, .server = server_id{0}},
                              {.elements = 40, .server = server_id{1}}};
    CHECK(loads.least() == server_id{0});
    loads.add({.first_shard = 0, .shards = 2, .path = route::two_hop}, shards);
    CHECK(loads.least() == server_id{2});
    CHECK(loads.elements(server_id{0}) == 100);
    CHECK(loads.elements(server_id{1}) == 40);
    loads.add({.first_shard = 0, .shards = 1, .path = route::one_hop}, shards); // no server has it
    CHECK(loads.elements(server_id{0}) == 100);
}
