// herring: tests of transport/tcp/match_table.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/match_table.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

using herring::detail::match_table;
using herring::detail::posted_receive;

TEST_CASE("match_table: holds as many as announced, and no more") {
    match_table table(3);
    std::byte memory[4];
    CHECK(table.insert({1, 10, std::span(memory)}));
    CHECK(table.insert({1, 11, std::span(memory, 2)}));
    CHECK(table.insert({2, 12, {}}));
    CHECK_FALSE(table.insert({3, 13, {}}));
    CHECK(table.size() == 3);
    posted_receive found;
    CHECK_FALSE(table.take(3, found));
    REQUIRE(table.take(2, found));
    CHECK(found.token == 12);
    CHECK(table.insert({3, 13, {}}));
    REQUIRE(table.take(1, found));
    std::uint64_t const first = found.token;
    CHECK(found.into.size() == (first == 10 ? 4 : 2));
    REQUIRE(table.take(1, found));
    CHECK(found.token == 21 - first);
    CHECK_FALSE(table.take(1, found));
    CHECK(table.size() == 1);
}

TEST_CASE("match_table: without any place") {
    match_table none;
    posted_receive found;
    CHECK_FALSE(none.insert({1, 1, {}}));
    CHECK_FALSE(none.take(1, found));
    match_table zero(0);
    CHECK_FALSE(zero.insert({1, 1, {}}));
    CHECK_FALSE(zero.take(1, found));
}

TEST_CASE("match_table: against a multimap, with few tags, many, and tags that collide") {
    for (std::uint64_t const tags : {1u, 3u, 40u, 100'000u})
        for (int const shift : {0, 20, 52, 60}) {
            std::mt19937_64 random(tags + static_cast<std::uint64_t>(shift));
            std::size_t const limit = 37;
            match_table table(limit);
            std::multimap<std::uint64_t, std::uint64_t> model;
            std::uint64_t next = 0;
            for (int step = 0; step < 20'000; ++step) {
                std::uint64_t const tag = (random() % tags) << shift;
                if (random() % 2 == 0) {
                    bool const room = model.size() < limit;
                    CHECK(table.insert({tag, next, {}}) == room);
                    if (room) model.emplace(tag, next);
                    ++next;
                } else {
                    posted_receive found;
                    auto const [begin, end] = model.equal_range(tag);
                    bool const there = begin != end;
                    bool const taken = table.take(tag, found);
                    if (taken != there) FAIL("a receive was lost or made up");
                    if (!taken) continue;
                    auto at = begin;
                    while (at != end && at->second != found.token) ++at;
                    if (at == end || found.tag != tag) FAIL("the wrong receive");
                    model.erase(at);
                }
                if (table.size() != model.size()) FAIL("the count is wrong");
            }
        }
}
