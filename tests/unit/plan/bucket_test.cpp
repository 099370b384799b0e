// herring: tests of plan/bucket.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/bucket.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>

using namespace herring;

TEST_CASE("bucket: routes have names") {
    static_assert(to_string(route::two_hop)[0] == 't');
    CHECK(std::string(to_string(route::mailbox)) == "mailbox");
    CHECK(std::string(to_string(route::dissemination)) == "dissemination");
    CHECK(std::string(to_string(static_cast<route>(99))) == "unknown");
}

TEST_CASE("chunk_stream: a pair exchanges the chunks that both handle, and no others") {
    for (int size_l = 1; size_l <= 6; ++size_l)
        for (int size_m = 1; size_m <= 6; ++size_m)
            for (int l = 0; l < size_l; ++l)
                for (int m = 0; m < size_m; ++m) {
                    chunk_stream const stream = chunk_stream::between(l, size_l, m, size_m);
                    for (std::uint32_t chunks = 0; chunks <= 40; ++chunks) {
                        shard const all{.chunks = chunks};
                        std::uint32_t due = 0, next = stream.first;
                        bool same = true;
                        for (std::uint32_t k = 0; k < chunks; ++k)
                            if (static_cast<int>(k) % size_l == l && static_cast<int>(k) % size_m == m) {
                                same = same && stream.any() && k == next;
                                next += stream.stride;
                                ++due;
                            }
                        CHECK(same);
                        CHECK(due == (stream.any() ? stream.count(all) : 0));
                    }
                }
}

TEST_CASE("chunk_stream: a shard with an owner is handled by that local rank alone, all of it") {
    shard const owned{.chunks = 7, .owner = 1};
    CHECK(chunk_stream::between(1, 2, 0, 1).handles(owned));
    CHECK_FALSE(chunk_stream::between(0, 2, 0, 1).handles(owned));
    CHECK_FALSE(chunk_stream{}.handles(owned));
    CHECK(chunk_stream::between(1, 2, 0, 1).count(owned) == 7);
}
