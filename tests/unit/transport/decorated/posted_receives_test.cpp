// herring: tests of transport/decorated/posted_receives.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/decorated/posted_receives.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using herring::peer_id;
using herring::detail::posted_receives;

namespace {
/// Takes what it is told to, and notes it.
struct below {
    struct post {
        std::size_t peer;
        std::uint64_t tag, token;
        std::byte* into;
    };
    int takes = 100;
    std::vector<post> posts{};

    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into, std::uint64_t token) {
        if (takes == 0) return false;
        --takes;
        posts.push_back({from.place(), tag, token, into.data()});
        return true;
    }
};
std::array<std::byte, 64> memory{};
} // namespace

TEST_CASE("posted_receives: each has a place of its own, which is its token below") {
    below inner;
    posted_receives all(3);
    for (std::uint64_t n = 0; n < 3; ++n) {
        CHECK_FALSE(all.full());
        CHECK(all.post(inner, peer_id::at(n), 10 + n, std::span(memory).subspan(n, 1), 20 + n));
    }
    CHECK(all.full());
    CHECK_FALSE(all.post(inner, peer_id::at(0), 1, memory, 2));
    CHECK(inner.posts.size() == 3);
    for (below::post const& one : inner.posts) {
        posted_receives::one const& kept = all[static_cast<std::size_t>(one.token)];
        CHECK(kept.tag == one.tag);
        CHECK(kept.token == one.tag + 10);
        CHECK(kept.from.place() == one.peer);
        CHECK(kept.into.data() == one.into);
    }
    all.release(static_cast<std::size_t>(inner.posts[1].token));
    CHECK(all.post(inner, peer_id::at(0), 5, memory, 6));
    CHECK(inner.posts[3].token == inner.posts[1].token);
    CHECK(all.full());
}

TEST_CASE("posted_receives: one that is refused has no place") {
    below inner{.takes = 0};
    posted_receives all(1);
    CHECK_FALSE(all.post(inner, peer_id::at(0), 1, memory, 2));
    CHECK_FALSE(all.full());
    inner.takes = 1;
    CHECK(all.post(inner, peer_id::at(0), 1, memory, 2));
}

TEST_CASE(
    "posted_receives: one whose message was dropped is posted again, until it is taken or its peer is lost") {
    below inner;
    posted_receives all(4);
    for (std::uint64_t n = 0; n < 4; ++n) REQUIRE(all.post(inner, peer_id::at(n), n, memory, n));
    all.repost(inner, 2);
    CHECK(inner.posts.back().token == 2);
    CHECK_FALSE(all.any_waiting());

    inner.takes = 0;
    for (std::size_t const place : {0u, 1u, 3u}) all.repost(inner, place);
    CHECK(all.any_waiting());
    auto const nobody = [](peer_id) { return false; };
    all.post_again(inner, nobody);
    CHECK(all.any_waiting());
    CHECK(inner.posts.size() == 5);

    std::size_t const of_lost = all[1].from.place();
    inner.takes = 1;
    all.post_again(inner, [&](peer_id peer) { return peer.place() == of_lost; });
    CHECK(inner.posts.size() == 6);
    CHECK(inner.posts.back().token == 0);
    CHECK(all.any_waiting());
    inner.takes = 9;
    all.post_again(inner, nobody);
    CHECK_FALSE(all.any_waiting());
    CHECK(inner.posts.size() == 7);
    CHECK(inner.posts.back().token == 3);
}
