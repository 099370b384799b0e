// herring: tests of engine/routes/two_hop.hpp; engine_test.cpp runs it over a network that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/two_hop.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

/// All nodes contribute and serve; the first two a share each, every other one three.
struct lopsided {
    using axis = herring::axes::placement;
    static constexpr char const* name = "lopsided";
    static constexpr herring::placement_facts facts{};
    static herring::roles assign(herring::topology const& map) {
        herring::roles all = herring::roles::both(map.nodes());
        for (int n = 0; n < map.nodes(); ++n) all.shares.push_back(n < 2 ? 1 : 3);
        return all;
    }
};
using lopsided_world = mesh::world_of<std::int32_t, herring::update::sum, lopsided>;

} // namespace

TEST_CASE("two_hop_route: a rank pushes a window to each server, and no more before results come") {
    mesh::world_of<std::int32_t> all({1, 1, 1}, {4096}, mesh::small_tuning(), 2, 0);
    REQUIRE(all.made.buckets[0].path == herring::route::two_hop);
    auto& first = *all.ranks[0];
    all.submit(first, 0);
    for (int i = 0; i < 200; ++i) first.runs->poll();
    CHECK(all.made.window() == 3);
    CHECK(all.net.most_sends() == 3);
    CHECK(first.runs->counters().messages_sent ==
          2 * 3); // both servers take them in, and wait for the others
    CHECK(first.runs->counters().messages_received == 0);
    CHECK(first.runs->core().waiting_for().rank > 0);
    for (int r : {1, 2}) all.submit(*all.ranks[static_cast<std::size_t>(r)], 0);
    for (int i = 0; i < 5000; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    for (auto& r : all.ranks) CHECK(r->runs->released() == 1);
    CHECK(all.net.early() == 0);
    CHECK(all.net.quiet());
}

TEST_CASE("two_hop_route: servers of unequal shares get theirs in proportion: no rank is done with the small "
          "ones first") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        lopsided_world all({1, 1, 1, 1}, {16384}, mesh::small_tuning(), seed, 0);
        std::vector<std::uint64_t> chunks; // of each server
        for (herring::shard const& s : all.made.shards) chunks.push_back(s.chunks);
        REQUIRE(chunks == std::vector<std::uint64_t>{32, 32, 96, 96});
        for (auto& r : all.ranks) all.submit(*r, 0);
        std::uint64_t furthest = 0; // chunks of a small share that a rank pushed more than in proportion
        for (std::size_t turn = 0; turn < 400'000; ++turn) {
            auto& r = *all.ranks[all.net.pick(4)];
            r.runs->poll();
            auto const pushed = [&](std::size_t server) {
                for (std::size_t i = 0; i < r.peers.size(); ++i)
                    if (r.peers[i] == static_cast<int>(server))
                        return static_cast<herring::detail::two_hop_windows const&>(r.runs->core())
                            .pairs[i]
                            .pushes.next();
                return chunks[server]; // its own
            };
            std::uint64_t const large = std::min(pushed(2), pushed(3)) / 3;
            for (std::size_t server : {0u, 1u})
                if (r.number != static_cast<int>(server) && pushed(server) > large)
                    furthest = std::max(furthest, pushed(server) - large);
            if (std::all_of(all.ranks.begin(), all.ranks.end(),
                            [](auto const& one) { return one->runs->released() == 1; }))
                break;
        }
        for (auto& r : all.ranks) CHECK(r->runs->released() == 1);
        CHECK(furthest <= all.made.window());
        CHECK(all.net.quiet());
    }
}

TEST_CASE("two_hop_route: in the order of shares no ranks wait for each other, whatever they submit when") {
    for (std::uint32_t seed = 1; seed <= 12; ++seed)
        for (std::vector<int> const& nodes : {std::vector<int>{1, 1, 1, 1}, {2, 1, 3}, {1, 2, 2, 4, 1}}) {
            CAPTURE(seed);
            lopsided_world all(nodes, {5000, 7, 1024, 640, 3000}, mesh::small_tuning(), seed, 20);
            std::vector<std::size_t> sequence;
            for (int i = 0; i < 25; ++i) sequence.push_back(all.net.pick(5));
            auto const value = [](int rank, std::uint64_t execution, std::size_t i) {
                return static_cast<std::int32_t>(1000 * rank + 7 * static_cast<int>(execution) +
                                                 static_cast<int>(i % 91));
            };
            auto const expected = [&](std::uint64_t execution, std::size_t i) {
                std::int32_t sum = 0;
                for (int r = 0; r < all.map.size(); ++r) sum += value(r, execution, i);
                return sum;
            };
            CHECK(all.run(sequence, value, expected));
            for (auto& r : all.ranks) all.submit_as<herring::operations::all_gather>(*r, 0);
            CHECK(all.settle());
            for (auto& r : all.ranks)
                all.submit_as<herring::operations::reduce_scatter<std::int32_t, herring::update::sum>>(*r, 4);
            CHECK(all.settle());
        }
}

TEST_CASE("two_hop_route: a receive that was refused at the start is posted before the first answer") {
    herring::detail::serve_window window(3);
    CHECK(window.to_post() == 0);
    window.posted(); // the others were refused
    window.arrives(0, {4, 0, 0, true});
    CHECK(window.arrived().here);
    std::vector<std::uint64_t> posted;
    for (; !window.is_reposted(); window.posted()) {
        window.vacate();
        posted.push_back(window.to_post());
    }
    CHECK(posted == std::vector<std::uint64_t>{1, 2, 3});
    CHECK(!window.arrived().here);
    window.answered();
    CHECK(window.next() == 1);
    CHECK(!window.is_reposted());
    window.posted();
    CHECK(window.is_reposted());
}
