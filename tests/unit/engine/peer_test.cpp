// herring: tests of engine/peer.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/peer.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <set>
#include <vector>

TEST_CASE("peer: slots and stages are as many as the plan says, apart, and within the staging memory") {
    for (bool const staged : {false, true}) {
        herring::plan made;
        made.element_bytes = 2;
        made.part_element_bytes = 4;
        made.nodes = 3;
        made.largest_node = staged ? 2 : 1;
        made.tuning = {.chunk_bytes = 1024, .window_bytes = 3072, .one_hop_bytes = 256};
        REQUIRE(made.window() == 3);
        std::vector<std::byte> memory(made.staging_bytes(2));
        std::span<std::byte> left(memory);
        std::vector<herring::detail::peer> peers;
        for (int rank : {4, 9})
            peers.emplace_back(rank, herring::chunk_stream{0, 1}, herring::server_id{1}, made, staged, left);
        // Exactly what the plan asked for; the rest is one set of stages for what goes to all.
        std::size_t const common = staged ? herring::plan::one_hop_stages() * (256 / 2 * 4) : 0;
        CHECK(left.size() == common);
        std::set<std::byte*> slots;
        std::size_t bytes = 0;
        for (auto const& p : peers) {
            CHECK(p.slot_bytes(0).size() == 1024 / 2 * 4);
            CHECK(p.part_slot_bytes(0).size() == 256 / 2 * 4);
            CHECK(p.slot(0) == p.slot(3));
            CHECK(p.slot(1) == p.slot(301));
            CHECK(p.part_slot(2) == p.part_slot(2 + 8 * 5));
            for (std::uint64_t n = 0; n < 3; ++n) {
                CHECK(slots.insert(p.slot(n)).second);
                bytes += p.slot_bytes(n).size() * (staged ? 2 : 1);
                if (staged) CHECK(slots.insert(p.stage(n)).second);
            }
            for (std::uint64_t n = 0; n < herring::plan::one_hop_window(); ++n) {
                CHECK(slots.insert(p.part_slot(n)).second);
                bytes += p.part_slot_bytes(n).size();
            }
        }
        CHECK(bytes + common == memory.size());
        CHECK(*slots.begin() == memory.data());
        CHECK(*slots.rbegin() < memory.data() + memory.size());
    }
}
