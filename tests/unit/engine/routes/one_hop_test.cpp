// herring: tests of engine/routes/one_hop.hpp; engine_test.cpp runs it over a network that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/one_hop.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

TEST_CASE("one_hop_windows: where nothing takes one hop there are none, and no receive is posted for them") {
    for (std::size_t const bytes : {0u, 192u}) {
        CAPTURE(bytes);
        herring::exchange_tuning tuning = mesh::small_tuning();
        tuning.one_hop_bytes = bytes;
        mesh::world_of<std::int32_t> all({1, 1, 1}, {16, 0, 1000}, tuning, 1, 0);
        herring::detail::one_hop_windows const& windows = all.ranks[0]->runs->core();
        CHECK(windows.pairs.size() == (bytes > 0 ? 2u : 0u));
        CHECK(all.net.most_receives() == (bytes > 0 ? 3 + 8 : 3)); // at the start
        CHECK(all.run(
            {0, 1, 2, 0, 2, 1, 1}, [](int rank, std::uint64_t, std::size_t) { return rank + 1; },
            [](std::uint64_t, std::size_t) { return 1 + 2 + 3; }));
    }
}

TEST_CASE(
    "one_hop_route: a rank runs ahead by half a window at most, and no message comes before its receive") {
    std::vector<std::size_t> const sizes(7, 16);
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        mesh::world_of<std::int32_t> all({1, 1, 1}, sizes, mesh::small_tuning(), seed, 0);
        auto& first = *all.ranks[0];
        for (std::size_t b = 0; b < 7; ++b) all.submit(first, b);
        for (int i = 0; i < 200; ++i) first.runs->poll();
        CHECK(first.runs->counters().messages_sent + 0 <= 2 * herring::plan::one_hop_window() / 2);
        CHECK(all.net.most_sends() == static_cast<int>(herring::plan::one_hop_window() / 2));
        for (int r : {1, 2})
            for (std::size_t b = 0; b < 7; ++b) all.submit(*all.ranks[static_cast<std::size_t>(r)], b);
        for (int i = 0; i < 3000; ++i)
            for (auto& r : all.ranks) r->runs->poll();
        for (auto& r : all.ranks) CHECK(r->runs->released() == 7);
        CHECK(all.net.early() == 0);
    }
}
