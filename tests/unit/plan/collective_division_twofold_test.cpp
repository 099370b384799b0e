// herring: tests of plan/collective_division.hpp: second shards behind the first, and parts that fit slots.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/collective_division.hpp"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace twofold_test {

using namespace herring;

bucket divided(std::size_t elements, plan const& of, std::vector<shard>& shards) {
    bucket_tensor const whole{0, 0, elements};
    bucket made;
    herring::detail::divide_twofold<sharding::balanced>(
        made, {elements, of.line_elements, std::span(&whole, 1)}, of, shards, {});
    return made;
}
plan plan_of(std::vector<int> const& nodes, exchange_tuning const& tuning, std::size_t element_bytes) {
    return make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
        std::vector<std::size_t>{}, topology(nodes), element_bytes, 4, tuning);
}

} // namespace twofold_test

TEST_CASE(
    "twofold: by two hops each shard has a second one with the same server and chunks, behind all firsts") {
    using namespace twofold_test;
    for (auto const& nodes : std::vector<std::vector<int>>{
             {0}, {0, 0}, {0, 0, 0}, {0, 1}, {0, 1, 2}, {0, 1, 0, 1}, {0, 1, 1}, {0, 1, 2, 3}})
        for (std::size_t const element_bytes : {std::size_t{2}, std::size_t{4}})
            for (std::size_t const chunk_bytes : {std::size_t{64}, std::size_t{256}, std::size_t{1024}})
                for (std::size_t const n : {1u, 5u, 31u, 32u, 33u, 100u, 1000u, 5000u}) {
                    plan const of = plan_of(nodes,
                                            {.chunk_bytes = chunk_bytes,
                                             .window_bytes = 4 * chunk_bytes,
                                             .one_hop_bytes = 128,
                                             .one_hop_bytes_two_nodes = 0,
                                             .local_chunk_bytes = 512,
                                             .mailbox_bytes = 64},
                                            element_bytes);
                    CAPTURE(nodes.size());
                    CAPTURE(chunk_bytes);
                    CAPTURE(n);
                    std::vector<shard> shards;
                    bucket const b = divided(n, of, shards);
                    REQUIRE(b.elements == n);
                    REQUIRE(b.shards == shards.size());
                    std::size_t const width = herring::detail::twofold_part_width(of);
                    CHECK(width == (of.nodes > 1 && of.largest_node > 1 ? 2 : 1));
                    bool const back = b.path == route::two_hop;
                    std::size_t const firsts = back ? shards.size() / 2 : shards.size();
                    std::size_t covered = 0, chunks = 0;
                    for (std::size_t s = 0; s < firsts; ++s) {
                        CHECK(shards[s].offset == covered);
                        covered += shards[s].elements;
                        chunks += shards[s].chunks;
                        // What a node sends of a chunk fits its slot.
                        std::size_t const largest = std::min(shards[s].chunk_elements, shards[s].elements);
                        if (of.nodes > 1)
                            CHECK(largest * width <= (back ? of.slot_elements() : of.hop_slot_elements()));
                        if (!back) continue;
                        shard const &one = shards[s], &two = shards[firsts + s];
                        CHECK(two.offset == one.offset + herring::detail::twofold_begin(n, of));
                        CHECK(two.elements == one.elements);
                        CHECK(two.chunk_elements == one.chunk_elements);
                        CHECK(two.chunks == one.chunks);
                        CHECK(two.server == one.server);
                        CHECK(two.owner == -1);
                    }
                    CHECK(covered == n);
                    CHECK(b.chunks == (back ? 2 * chunks : chunks));
                    CHECK(herring::detail::twofold_begin(n, of) % of.line_elements == 0);
                }
}

TEST_CASE(
    "twofold: a node's sum and squares count for the route; a piece and its second results fit a slot") {
    using namespace twofold_test;
    exchange_tuning const tuning{.chunk_bytes = 4096,
                                 .window_bytes = 16384,
                                 .one_hop_bytes = 2048,
                                 .one_hop_bytes_two_nodes = 0,
                                 .local_chunk_bytes = 512,
                                 .mailbox_bytes = 64};
    std::vector<shard> shards;
    CHECK(divided(512, plan_of({0, 1, 2}, tuning, 4), shards).path == route::one_hop);
    CHECK(divided(512, plan_of({0, 1, 2, 2}, tuning, 4), shards).path == route::two_hop);
    CHECK(divided(256, plan_of({0, 1, 2, 2}, tuning, 4), shards).path == route::one_hop);
    plan const of = plan_of({0, 0, 1}, tuning, 4);
    for (std::size_t const room : {64u, 1000u, 65'536u}) {
        std::size_t const piece = herring::detail::twofold_piece(room, of);
        CHECK(piece > 0);
        CHECK(herring::detail::twofold_begin(piece, of) + piece <= room);
    }
}
