// herring: tests of engine/routes/two_levels.hpp, over a network that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/two_levels.hpp"

#include "unit/engine/rack_sums.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

/// All sums that would take two hops take two levels.
herring::exchange_tuning levels() {
    herring::exchange_tuning tuning = mesh::small_tuning();
    tuning.two_level_bytes = 1;
    return tuning;
}

rack_sums::shape const even_shapes[] = {{{1, 1, 1, 1}, {0, 0, 1, 1}},
                                        {{2, 2, 2, 2}, {0, 1, 1, 0}},
                                        {{1, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1}},
                                        {{1, 1, 1, 1, 1, 1}, {0, 1, 2, 0, 1, 2}},
                                        {{3, 3, 3, 3}, {0, 0, 1, 1}}};

} // namespace

TEST_CASE("two_level_route: the bits of sums by racks, in any order of messages, refused and late") {
    std::vector<std::size_t> const tensors{16, 48, 65, 700, 2999, 4096};
    for (rack_sums::shape const& on : even_shapes)
        for (std::uint32_t seed = 1; seed <= 4 / HERRING_TEST_PART; ++seed) {
            CAPTURE(seed);
            CAPTURE(on.nodes.size());
            mesh::world_of<float> some(on.nodes, tensors, levels(), seed, 0, on.racks);
            CHECK(some.made.buckets[2].path == herring::route::two_levels);
            rack_sums::sums<float>(on, tensors, levels(), seed);
            rack_sums::sums<herring::bfloat16>(on, tensors, levels(), seed);
        }
}

TEST_CASE("two_level_route: a rank has messages to its rack and to one node of each other rack alone") {
    // 3 racks of 2 nodes: 1 near peer, 2 far ones; each column has 3 chunks of 48 floats, a line a rack.
    mesh::world_of<float> all({1, 1, 1, 1, 1, 1}, {288}, levels(), 3, 0, {0, 0, 1, 1, 2, 2});
    REQUIRE(all.made.buckets[0].path == herring::route::two_levels);
    REQUIRE(all.made.buckets[0].chunks == 6);
    for (auto& r : all.ranks) all.submit(*r, 0);
    REQUIRE(all.settle());
    for (auto& r : all.ranks) {
        herring::counters const seen = r->runs->counters();
        // Each chunk: pushed to, or returned by, the node that sums it; its shares pushed to and returned by two racks.
        CHECK(seen.messages_sent == 3 + 3 + 3 * 2 * 2);
        CHECK(seen.messages_received == seen.messages_sent);
        CHECK(seen.bytes_sent == 2 * 3 * 192 + 3 * 2 * (64 + 64));
        herring::detail::two_hop_windows const& flat = r->runs->core();
        for (auto const& pair : flat.pairs) CHECK(pair.pushes.next() == 0);
    }
    CHECK(all.net.quiet());
}

TEST_CASE("two_level_route: who is late is named by its rack, and its rack by the others") {
    mesh::world_of<float> all({1, 1, 1, 1}, {4096}, levels(), 2, 0, {0, 0, 1, 1});
    for (auto& r : all.ranks)
        if (r->number != 3) all.submit(*r, 0);
    for (int i = 0; i < 3000; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    CHECK(all.ranks[2]->runs->core().waiting_for().rank == 3);
    for (int r : {0, 1}) CHECK(all.ranks[static_cast<std::size_t>(r)]->runs->core().waiting_for().rank >= 2);
    all.submit(*all.ranks[3], 0);
    CHECK(all.settle());
}

TEST_CASE("two_level_route: a rank in another call is a mismatch") {
    mesh::world_of<float> all({1, 1, 1, 1}, {4096, 2048}, levels(), 2, 0, {0, 0, 1, 1});
    for (auto& r : all.ranks) all.submit(*r, r->number == 3 ? 1 : 0);
    CHECK_FALSE(all.settle());
    mesh::world_of<float> routes({1, 1, 1, 1}, {4096, 16}, levels(), 2, 0, {0, 0, 1, 1});
    for (auto& r : routes.ranks) routes.submit(*r, r->number == 3 ? 1 : 0);
    CHECK_FALSE(routes.settle());
}

TEST_CASE("two_level_route: only where racks and nodes are alike, and sums are large") {
    auto const of = [](std::vector<int> const& nodes, std::vector<int> const& racks, std::size_t least) {
        herring::exchange_tuning tuning = levels();
        tuning.two_level_bytes = least;
        mesh::world_of<float> all(nodes, {100, 400}, tuning, 1, 0, racks);
        std::string found;
        for (herring::bucket const& b : all.made.buckets)
            found += b.path == herring::route::two_levels ? '2' : '1';
        return found;
    };
    CHECK(of({1, 1, 1, 1}, {0, 0, 1, 1}, 1) == "22");
    CHECK(of({1, 1, 1, 1}, {0, 0, 1, 1}, 401) == "12");
    CHECK(of({1, 1, 1, 1}, {0, 0, 1, 1}, herring::exchange_tuning::no_two_levels) == "11");
    CHECK(of({1, 1, 1, 1}, {}, 1) == "11");
    CHECK(of({1, 1, 1, 1}, {0, 1, 2, 3}, 1) == "11");
    CHECK(of({1, 1, 1, 1}, {0, 0, 0, 1}, 1) == "11");
    CHECK(of({1, 2, 1, 2}, {0, 0, 1, 1}, 1) == "11");
}
