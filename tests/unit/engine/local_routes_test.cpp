// herring: tests of engine/local_routes.hpp; engine_test.cpp runs it with all ranks at their own pace.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/local_routes.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

TEST_CASE("local_routes: a mailbox is not filled again before this rank and all others have read it") {
    mesh::world_of<std::int32_t> all({3}, {4, 4, 4, 4, 4, 4}, mesh::small_tuning(), 1, 0);
    for (herring::bucket const& b : all.made.buckets) REQUIRE(b.path == herring::route::mailbox);
    auto const fill = [&](int rank, std::size_t bucket) {
        auto& r = *all.ranks[static_cast<std::size_t>(rank)];
        for (std::int32_t& x : all.memory(r, bucket)) x = static_cast<std::int32_t>(bucket) + 10 * rank;
        all.submit(r, bucket);
    };
    auto& late = *all.ranks[0];
    for (std::size_t b = 0; b < 4; ++b) fill(0, b);
    late.runs->poll(); // four mailboxes are full
    for (int rank : {1, 2})
        for (std::size_t b = 0; b < 4; ++b) fill(rank, b);
    for (int rank : {1, 2, 1, 2})
        all.ranks[static_cast<std::size_t>(rank)]->runs->poll(); // they are done with them
    CHECK(all.ranks[1]->runs->released() == 4);
    fill(0, 4);
    late.runs->poll(); // this rank has not read them: the fifth must wait
    for (int i = 0; i < 3; ++i) late.runs->poll();
    CHECK(late.runs->released() == 4);
    for (std::size_t b = 0; b < 4; ++b)
        for (std::int32_t const x : all.memory(late, b)) CHECK(x == 3 * static_cast<std::int32_t>(b) + 30);
    for (int rank : {1, 2}) fill(rank, 4);
    for (int i = 0; i < 4; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    for (std::int32_t const x : all.memory(late, 4)) CHECK(x == 3 * 4 + 30);
}

TEST_CASE("local_routes: in place, nobody's memory is released before all ranks have done their chunks") {
    mesh::world_of<std::int32_t> all({2}, {1000}, mesh::small_tuning(), 1, 0);
    REQUIRE(all.made.buckets[0].path == herring::route::local);
    for (auto& r : all.ranks) all.submit(*r, 0);
    auto& first = *all.ranks[0]->runs;
    auto& second = *all.ranks[1]->runs;
    first.poll();
    second.poll(); // has done its part
    CHECK(second.released() == 0);
    first.poll();
    CHECK(first.released() == 1);
    second.poll();
    CHECK(second.released() == 1);
}
