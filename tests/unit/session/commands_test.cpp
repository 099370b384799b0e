// herring: tests of session/commands.hpp: one chunk of a command for each server that is a node of its own.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/commands.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

using namespace herring;

TEST_CASE("commands: each dedicated server gets a chunk, and workers that serve get none") {
    std::array<std::byte, detail::command::bytes + sizeof(double)> memory{};
    detail::command_post post;
    post.open(memory, roles{{0, 1}, {0, 1, 2, 3}, {}}, "wait");
    REQUIRE(post.any());
    execution const e = post.next(4);
    CHECK(e.operation == 4);
    CHECK(e.path == route::two_hop);
    CHECK(e.own == memory.data());
    REQUIRE(e.shard_count == 2);
    for (std::uint32_t s = 0; s < 2; ++s) {
        CHECK(e.shards[s].server.value == static_cast<int>(2 + s));
        CHECK(e.shards[s].chunks == 1);
        CHECK(e.shards[s].first_chunk == s);
        CHECK(e.shards[s].owner == -1);
    }
    detail::command_post none;
    none.open({}, roles::both(3), "wait");
    CHECK_FALSE(none.any());
}

TEST_CASE("commands: they are numbered, and the values that were set follow") {
    std::array<std::byte, detail::command::bytes + sizeof(double)> memory{};
    detail::command_post post;
    post.open(memory, roles{{0}, {1}, {}}, "wait");
    double const value = 0.25;
    post.set_values(std::as_bytes(std::span(&value, 1)));
    for (std::uint64_t number = 0; number < 3; ++number) {
        post.write({.what = detail::command::kind::start, .root = 0});
        detail::command read;
        REQUIRE(read.read(std::span(memory).first(detail::command::bytes), 1, 1));
        CHECK(read.number == number);
        CHECK(std::memcmp(memory.data() + detail::command::bytes, &value, sizeof value) == 0);
    }
}
