// herring: tests of engine/routes/two_hop.hpp; engine_test.cpp runs it over a network that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/two_hop.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include <cstdint>
#include <vector>

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
