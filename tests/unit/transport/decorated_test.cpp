// herring: tests of transport/decorated.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/decorated.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace detail = herring::detail;
using detail::posted_receives;
using herring::peer_id;

namespace {
struct quick {
    static constexpr char const* word = "quick";
};
struct bare {
    static constexpr char const* name = "bare";
};
struct first_need {};
struct second_need {};
struct needy : bare {
    using needs = herring::needs<first_need>;
};
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
struct entry {
    std::uint64_t tag = 0;
    std::uint64_t token = 0;
};
using ring_of_entries = detail::waiting_ring<entry>;
} // namespace

TEST_CASE("decorated: the name has the decorator around that of the transport") {
    CHECK(std::string(detail::composed_name<quick, bare>.data()) == "quick<bare>");
}

TEST_CASE("decorated: the needs of the transport come first, if it has any") {
    CHECK(std::is_same_v<detail::needs_and<bare, second_need>::type, herring::needs<second_need>>);
    CHECK(
        std::is_same_v<detail::needs_and<needy, second_need>::type, herring::needs<first_need, second_need>>);
}

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
        posted_receives::entry const& kept = all[static_cast<std::size_t>(one.token)];
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

TEST_CASE("waiting_ring: first in, first out, as many as were announced at least") {
    ring_of_entries ring(5);
    CHECK(ring.empty());
    std::uint64_t in = 0, out = 0;
    for (int round = 0; round < 40; ++round) {
        std::size_t held = 0;
        for (; !ring.full(); ++held) ring.push({.tag = in, .token = in + 100}), ++in;
        CHECK(held >= 1);
        for (std::size_t i = 0; i < 5; ++i, ring.pop(), ++out) {
            REQUIRE_FALSE(ring.empty());
            CHECK(ring.front().tag == out);
            CHECK(ring.front().token == out + 100);
        }
    }
    std::size_t const left = static_cast<std::size_t>(in - out);
    CHECK(ring.clear() == left);
    CHECK(ring.empty());
    CHECK(ring.clear() == 0);
}

TEST_CASE("waiting_ring: without any place it is empty and full") {
    ring_of_entries none;
    CHECK(none.empty());
    CHECK(none.full());
}
