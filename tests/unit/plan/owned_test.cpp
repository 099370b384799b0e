// herring: tests of plan/owned.hpp: shards of owners, against brute force.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/owned.hpp"

#include "herring/fusion/per_tensor.hpp"
#include "herring/placement/colocated.hpp"
#include "herring/sharding/balanced.hpp"

#include "doctest/doctest.h"

#include <vector>

using namespace herring;

TEST_CASE("owned: each rank's range is a shard of its own, whose chunks cover it, on its node") {
    for (auto const& nodes :
         std::vector<std::vector<int>>{{0}, {0, 0, 0}, {0, 1, 2}, {0, 1, 0, 1}, {0, 1, 1}})
        for (std::size_t elements :
             {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{100}, std::size_t{5000}}) {
            topology const map(nodes);
            exchange_tuning const tuning{.chunk_bytes = 1024,
                                         .window_bytes = 4096,
                                         .one_hop_bytes = 64,
                                         .local_chunk_bytes = 512,
                                         .mailbox_bytes = 64};
            plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
                std::vector<std::size_t>{}, map, 4, 4, tuning);
            std::vector<range> owned;
            for (int r = 0; r < map.size(); ++r) owned.push_back(owned_range(elements, r, map.size()));
            bucket b;
            std::vector<shard> shards(7); // what was there before goes
            detail::divide_owned(b, elements, owned, of, map, shards);
            CHECK(b.elements == elements);
            CHECK(b.shards == shards.size());
            CHECK(b.path == detail::route_of(elements * 4, of));
            std::size_t covered = 0, chunks = 0;
            for (shard const& s : shards) {
                chunks += s.chunks;
                if (b.path == route::one_hop) {
                    CHECK(s.owner == -1);
                    CHECK(s.server.value == -1);
                    covered += s.elements;
                    continue;
                }
                int const rank = map.rank_of(map.nodes() > 1 ? of.roles.node_of(s.server) : 0, s.owner);
                CHECK(owned[static_cast<std::size_t>(rank)] == range{s.offset, s.elements});
                CHECK(s.chunk_elements * 4 <= 1024);
                CHECK(s.chunk_elements * s.chunks >= s.elements);
                covered += s.elements;
            }
            CHECK(covered == elements);
            CHECK(chunks == b.chunks);
        }
}
