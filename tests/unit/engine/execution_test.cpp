// herring: tests of engine/execution.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/execution.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <utility>
#include <vector>

using herring::chunk_cursor;
using herring::chunk_stream;
using herring::execution;
using herring::shard;

TEST_CASE(
    "execution: a cursor visits the chunks of its stream and its server, in order, against brute force") {
    std::vector<shard> const shards{
        {.offset = 0, .elements = 100, .chunk_elements = 16, .chunks = 7, .first_chunk = 0, .server = {0}},
        {.offset = 100, .elements = 64, .chunk_elements = 16, .chunks = 4, .first_chunk = 7, .server = {1}},
        {.offset = 164, .elements = 5, .chunk_elements = 16, .chunks = 1, .first_chunk = 11, .server = {0}},
        {.offset = 169, .elements = 33, .chunk_elements = 16, .chunks = 3, .first_chunk = 12, .server = {1}},
    };
    execution e;
    e.shards = shards.data();
    e.shard_count = 4;
    for (int server = 0; server < 3; ++server)
        for (std::uint32_t stride = 1; stride < 9; ++stride)
            for (std::uint32_t first = 0; first < stride; ++first) {
                std::vector<std::pair<std::size_t, std::size_t>> expected, seen;
                for (shard const& s : shards)
                    for (std::uint32_t k = 0; k < s.chunks; ++k)
                        if (s.server.value == server && k % stride == first) {
                            std::size_t const from = k * s.chunk_elements;
                            expected.emplace_back(s.offset + from,
                                                  std::min(s.chunk_elements, s.elements - from));
                        }
                chunk_cursor cursor({first, stride}, herring::server_id{server});
                for (; cursor.settle(e); cursor.next_chunk()) {
                    CHECK(cursor.settle(e)); // settling twice changes nothing
                    seen.emplace_back(cursor.here(e).offset, cursor.here(e).elements);
                }
                CHECK(seen == expected);
                CHECK_FALSE(cursor.settle(e));
                CHECK(cursor.at == 0);
                cursor.next_execution();
                CHECK(cursor.at == 1);
                CHECK(cursor.settle(e) == !expected.empty());
            }
}

TEST_CASE("execution: without shards there is no chunk") {
    execution const nothing;
    chunk_cursor cursor({0, 1}, herring::server_id{0});
    CHECK_FALSE(cursor.settle(nothing));
    cursor.next_execution();
    CHECK_FALSE(cursor.settle(nothing));
}
