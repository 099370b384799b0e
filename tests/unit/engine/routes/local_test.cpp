// herring: tests of engine/routes/local.hpp; engine_test.cpp runs it with all ranks at their own pace.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/local.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

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

namespace {

using int_mesh = mesh::world_of<std::int32_t>;

// Submits bucket 0 with a copy of `mine` in the region of local rank `home`; results go to `result`.
void lend(int_mesh& all, int_mesh::rank& r, std::byte* place, int home, std::vector<std::int32_t> const& mine,
          std::vector<std::int32_t>& result, herring::lent_part& part,
          std::span<std::int32_t const> next = {}) {
    herring::bucket const& b = all.made.buckets[0];
    REQUIRE(mine.size() <= b.elements);
    std::memcpy(place, mine.data(), mine.size() * sizeof(std::int32_t));
    part = {reinterpret_cast<std::byte const*>(mine.data()), reinterpret_cast<std::byte*>(result.data()), 0,
            mine.size()};
    r.runs->submit({.shards = all.made.shards.data() + b.first_shard,
                    .shard_count = b.shards,
                    .path = b.path,
                    .own = place,
                    .home = home,
                    .elements = b.elements,
                    .fingerprint = 0,
                    .label = 0,
                    .lent_parts = 1,
                    .lent = &part,
                    .next = std::as_bytes(next)});
}

} // namespace

TEST_CASE("local_routes: two ranks that lend their memory are done after one wait, and swap places") {
    int_mesh all({2}, {1000}, mesh::small_tuning(), 1, 0);
    REQUIRE(all.made.buckets[0].path == herring::route::local);
    std::byte* place[2];
    int home[2] = {0, 1};
    for (std::size_t r = 0; r < 2; ++r) place[r] = all.ranks[r]->node.memory();
    std::byte* const before[2] = {place[0], place[1]};
    for (std::uint64_t turn = 0; turn < 5; ++turn) {
        std::vector<std::int32_t> mine[2], result[2];
        herring::lent_part part[2];
        for (std::size_t r = 0; r < 2; ++r) {
            mine[r].resize(1000);
            result[r].resize(1000);
            for (std::size_t i = 0; i < 1000; ++i)
                mine[r][i] = static_cast<std::int32_t>(i * 3 + 1000 * r + turn);
            lend(all, *all.ranks[r], place[r], home[r], mine[r], result[r], part[r]);
        }
        auto& first = *all.ranks[0]->runs;
        auto& second = *all.ranks[1]->runs;
        first.poll(); // has arrived
        second.poll();
        REQUIRE(second.released() == turn + 1); // without a word from the other that it has finished
        CHECK(first.released() == turn);
        auto const swapped = second.ended(turn);
        CHECK(swapped.how == herring::lending::swap);
        CHECK(swapped.own == place[0]);
        CHECK(swapped.home == home[0]);
        std::memset(swapped.own, 0x5a, 1000 * sizeof(std::int32_t)); // it is this rank's now
        first.poll();
        REQUIRE(first.released() == turn + 1);
        CHECK(first.ended(turn).own == place[1]);
        for (std::size_t r = 0; r < 2; ++r)
            for (std::size_t i = 0; i < 1000; ++i)
                REQUIRE(result[r][i] == static_cast<std::int32_t>(i * 6 + 1000 + 2 * turn));
        std::swap(place[0], place[1]);
        std::swap(home[0], home[1]);
    }
    CHECK(place[0] == before[1]);
}

TEST_CASE("local_routes: what a rank copies next lies in the place that the exchange leaves it") {
    int_mesh all({2}, {1000}, mesh::small_tuning(), 1, 0);
    std::vector<std::int32_t> const mine(1000, 5), next(700, 9);
    std::vector<std::int32_t> result[2] = {std::vector<std::int32_t>(1000), std::vector<std::int32_t>(1000)};
    herring::lent_part parts[2];
    for (std::size_t r = 0; r < 2; ++r)
        lend(all, *all.ranks[r], all.ranks[r]->node.memory(), static_cast<int>(r), mine, result[r], parts[r],
             r == 0 ? std::span<std::int32_t const>(next) : std::span<std::int32_t const>());
    for (int i = 0; i < 3; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    for (std::size_t r = 0; r < 2; ++r) {
        REQUIRE(all.ranks[r]->runs->released() == 1);
        for (std::int32_t const x : result[r]) REQUIRE(x == 10);
        std::vector<std::int32_t> got(1000);
        std::memcpy(got.data(), all.ranks[r]->runs->ended(0).own, got.size() * sizeof(std::int32_t));
        for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == (r == 0 && i < 700 ? 9 : 5));
    }
}

TEST_CASE("local_routes: where one of two ranks has its tensor in place, nothing is exchanged") {
    int_mesh all({2}, {1000}, mesh::small_tuning(), 1, 0);
    std::vector<std::int32_t> const mine(1000, 5);
    std::vector<std::int32_t> result(1000, 0);
    herring::lent_part part;
    lend(all, *all.ranks[0], all.ranks[0]->node.memory(), 0, mine, result, part);
    for (std::int32_t& x : all.memory(*all.ranks[1], 0)) x = 7;
    all.submit(*all.ranks[1], 0);
    for (int i = 0; i < 3; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    for (auto& r : all.ranks) {
        REQUIRE(r->runs->released() == 1);
        CHECK(r->runs->ended(0).how == herring::lending::none);
        CHECK(r->runs->ended(0).own == r->node.memory());
        for (std::int32_t const x : all.memory(*r, 0).first(1000))
            REQUIRE(x == 12); // to be copied out by the caller
    }
}

TEST_CASE("local_routes: three ranks that lend their memory sum their chunks for all") {
    int_mesh all({3}, {1000}, mesh::small_tuning(), 1, 0);
    std::vector<std::int32_t> const mine(1000, 5);
    std::vector<std::int32_t> result(1000, 0);
    herring::lent_part parts[3];
    for (std::size_t r = 0; r < 3; ++r)
        lend(all, *all.ranks[r], all.ranks[r]->node.memory(), static_cast<int>(r), mine, result, parts[r]);
    for (int i = 0; i < 3; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    for (auto& r : all.ranks) {
        REQUIRE(r->runs->released() == 1);
        CHECK(r->runs->ended(0).how == herring::lending::none);
        for (std::int32_t const x : all.memory(*r, 0).first(1000)) REQUIRE(x == 15);
    }
}
