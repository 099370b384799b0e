// herring: tests of engine/neighbours.hpp: which peer handles a chunk, where nodes are alike and where they are not.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/neighbours.hpp"

#include "doctest/doctest.h"

#include "plan/inputs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace herring;

TEST_CASE("neighbours: on each node the peer that handles a chunk, whatever the sizes of nodes and the order "
          "of ranks") {
    for (topology const& map :
         {topology::uniform(5, 1), topology::uniform(4, 3), topology({0, 1, 2, 2, 1, 0}),
          topology({0, 1, 1, 0, 1, 2}), plan_inputs::uneven({3, 1, 2}), plan_inputs::uneven({4, 2, 2})}) {
        roles const both = roles::both(map.nodes());
        for (int rank = 0; rank < map.size(); ++rank) {
            int const node = map.node(rank), local = map.local_rank(rank), ranks = map.local_size(node);
            std::vector<int> peers;
            for (int other = 0; other < map.size(); ++other)
                if (map.node(other) != node && chunk_stream::between(local, ranks, map.local_rank(other),
                                                                     map.local_size(map.node(other)))
                                                   .any())
                    peers.push_back(other);
            detail::neighbours const who(map, both, rank, peers);
            CHECK(who.own_chunks().first == static_cast<std::uint32_t>(local));
            for (std::size_t i = 0; i < peers.size(); ++i) CHECK(who.peer_of(peers[i]) == i);
            for (int n = 0; n < map.nodes(); ++n)
                for (int k = local; n != node && k < 24; k += ranks) { // this rank's chunks
                    chunk c{};
                    c.turn = static_cast<std::uint32_t>(k);
                    std::size_t const place = who.handler(n, c);
                    REQUIRE(place < peers.size());
                    CHECK(peers[place] == map.rank_of(n, k % map.local_size(n)));
                }
        }
    }
}
