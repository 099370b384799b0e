// herring: tests of the order of pushes in engine/window.hpp: places follow from the plan, and the same part of each share lies behind one.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/window.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <vector>

using herring::chunk_cursor;
using herring::chunk_stream;
using herring::execution;
using herring::server_id;
using herring::shard;
using herring::detail::push_order;

namespace {

shard of(int server, std::uint32_t chunks) {
    shard one;
    one.chunks = chunks;
    one.chunk_elements = 16;
    one.elements = 16 * std::size_t{chunks};
    one.server = {server};
    return one;
}

/// The places of a stream's chunks of one server, in an execution of these shards behind `before` elements.
std::vector<std::uint64_t> places(std::vector<shard> const& shards, int server, chunk_stream stream,
                                  std::uint64_t before) {
    execution e;
    e.shards = shards.data();
    e.shard_count = static_cast<std::uint32_t>(shards.size());
    for (shard const& s : shards) e.elements += s.elements;
    std::vector<std::uint64_t> all;
    push_order order;
    chunk_cursor at(stream, {server});
    for (; at.settle(e); at.next_chunk()) all.push_back(order.place(at, e, before));
    return all;
}

} // namespace

TEST_CASE("push_order: chunks of a share stand evenly over the bucket, behind the buckets before") {
    std::vector<shard> const shards{of(0, 2), of(1, 6), of(2, 4)}; // 192 elements
    CHECK(places(shards, 0, {0, 1}, 1000) == std::vector<std::uint64_t>{1000, 1096});
    CHECK(places(shards, 1, {0, 1}, 1000) == std::vector<std::uint64_t>{1000, 1032, 1064, 1096, 1128, 1160});
    CHECK(places(shards, 2, {0, 1}, 0) == std::vector<std::uint64_t>{0, 48, 96, 144});
    CHECK(places(shards, 3, {0, 1}, 0).empty());
}

TEST_CASE("push_order: a chunk has its place whichever local rank handles it, and in whichever shard it is") {
    std::vector<shard> const shards{of(0, 3), of(1, 6), of(0, 3)};
    auto const all = places(shards, 0, {0, 1}, 5);
    REQUIRE(all == std::vector<std::uint64_t>{5, 37, 69, 101, 133, 165});
    CHECK(places(shards, 0, {0, 2}, 5) == std::vector<std::uint64_t>{all[0], all[2], all[3], all[5]});
    CHECK(places(shards, 0, {1, 2}, 5) == std::vector<std::uint64_t>{all[1], all[4]});
}

TEST_CASE("push_order: a cursor goes on to the next execution, and how far apart chunks are is that one's") {
    std::vector<shard> const first{of(0, 2), of(1, 2)}, second{of(1, 1), of(0, 8)};
    execution e;
    push_order order;
    chunk_cursor at({0, 2}, {0});
    for (auto const* shards : {&first, &second}) {
        e.shards = shards->data();
        e.shard_count = 2;
        e.elements = shards == &first ? 64 : 144;
        REQUIRE(at.settle(e));
        CHECK(order.place(at, e, shards == &first ? 0 : 64) == (shards == &first ? 0 : 64));
        CHECK(order.stride(at.stream) == (shards == &first ? 64 : 36));
        at.next_chunk();
        CHECK(at.settle(e) == (shards == &second));
        if (shards == &first) at.next_execution();
    }
    CHECK(order.place(at, e, 64) == 64 + 2 * 18);
}
