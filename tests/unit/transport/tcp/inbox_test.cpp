// herring: tests of transport/tcp/inbox.hpp, without a socket.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/inbox.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

using namespace herring;

namespace {

constexpr std::uint64_t job = 7;

/// A peer of rank 3 with room for four receives, one lane, and what the inbox says of them.
struct pair {
    detail::tcp_inbox inbox{job, 100, 1000};
    detail::tcp_peer peer;
    detail::tcp_lane lane;
    detail::drain_buffer<completion> done{4};
    int lost = 0; // errno
    detail::landing where;

    pair() {
        peer.id = peer_id{0};
        peer.rank = 3;
        peer.incarnation = 9;
        peer.posted = detail::match_table(4);
    }
    auto losing() {
        return [this](detail::tcp_peer&, int number) noexcept { lost = number; };
    }
    /// Where its payload goes; nullptr: it waits or is skipped.
    std::byte* comes(std::uint64_t tag, std::size_t length, std::uint64_t of_job = job,
                     std::string_view envelope = {}) {
        where = inbox.destination(
            peer, lane, {.job = of_job, .incarnation = 9, .tag = tag, .length = length, .source = 3},
            std::as_bytes(std::span(envelope)), losing());
        return where.to;
    }
    completion reported() {
        completion seen{};
        auto const note = [&](completion const& c) noexcept { seen = c; };
        CHECK(inbox.hand_out(done, note) == 1);
        return seen;
    }
};

} // namespace

TEST_CASE("tcp_inbox: a payload goes to the receive of its tag, whatever bits the tag carries") {
    pair p;
    std::array<std::byte, 50> into{};
    p.peer.posted.insert({5, 11, into});
    CHECK(p.comes(5 | std::uint64_t{1} << 40, 20) == into.data());
    CHECK(p.lane.early == nullptr);
    CHECK(p.lane.token == 11);
}

TEST_CASE("tcp_inbox: a message that comes early is kept until its receive, which gets it") {
    pair p;
    std::byte* const at = p.comes(5, 4);
    REQUIRE(at != nullptr);
    REQUIRE(p.lane.early != nullptr);
    std::array<std::byte, 50> into{};
    detail::posted_receive const receive{5, 11, into};
    CHECK_FALSE(p.inbox.take(p.peer, receive, p.done, p.losing())); // it is not complete
    std::memcpy(at, "abcd", 4);
    p.inbox.complete(p.peer, *p.lane.early, p.done, p.losing());
    CHECK(p.inbox.take(p.peer, receive, p.done, p.losing()));
    completion const seen = p.reported();
    CHECK(seen.what == completion::received);
    CHECK(seen.token == 11);
    CHECK(seen.bytes == 4);
    CHECK(seen.peer == p.peer.id);
    CHECK(std::memcmp(into.data(), "abcd", 4) == 0);
    CHECK(p.peer.unexpected.empty());
}

TEST_CASE(
    "tcp_inbox: the envelope of an early message stays until it is reported, also where more is taken then") {
    pair p;
    for (char const* const text : {"first", "second", "third"}) {
        std::byte* const at = p.comes(5, 4, job, text);
        REQUIRE(at != nullptr);
        std::memset(at, text[0], 4);
        p.inbox.complete(p.peer, *p.lane.early, p.done, p.losing());
    }
    std::array<std::byte, 4> into{};
    detail::posted_receive const receive{5, 11, into};
    REQUIRE(p.inbox.take(p.peer, receive, p.done, p.losing()));
    REQUIRE(p.inbox.take(p.peer, receive, p.done, p.losing()));
    std::string all;
    auto const note = [&](completion const& c) noexcept {
        if (all.empty()) CHECK(p.inbox.take(p.peer, receive, p.done, p.losing())); // as from a functor
        all += std::string(reinterpret_cast<char const*>(c.envelope.data()), c.envelope.size()) + " ";
    };
    CHECK(p.inbox.hand_out(p.done, note) == 2);
    CHECK(all == "first second ");
    CHECK(p.inbox.hand_out(p.done, note) == 1);
    CHECK(all == "first second third ");
    CHECK(p.peer.unexpected.empty());
}

TEST_CASE("tcp_inbox: a receive that is posted while its message comes in gets it at the end") {
    pair p;
    REQUIRE(p.comes(5, 4) != nullptr);
    std::array<std::byte, 50> into{};
    p.peer.posted.insert({5, 11, into});
    p.inbox.complete(p.peer, *p.lane.early, p.done, p.losing());
    CHECK(p.reported().token == 11);
}

TEST_CASE("tcp_inbox: early messages beyond the limit stay in the socket, and there is room again later") {
    pair p; // 1000 bytes, of which a message costs 128 beside its payload
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
        REQUIRE(p.comes(tag, 100) != nullptr);
        p.inbox.complete(p.peer, *p.lane.early, p.done, p.losing());
    }
    CHECK(p.comes(4, 100) == nullptr);
    CHECK(p.where.what == detail::landing::action::wait);
    CHECK(p.lost == 0);
    std::array<std::byte, 100> into{};
    CHECK(p.inbox.take(p.peer, {2, 1, into}, p.done, p.losing()));
    CHECK(p.comes(4, 100) != nullptr);
}

TEST_CASE("tcp_inbox: more than was announced, or than the receive takes, loses the peer with the numbers") {
    pair beyond;
    CHECK(beyond.comes(5, 101) == nullptr);
    CHECK(beyond.lost == EMSGSIZE);
    CHECK(std::string(beyond.peer.reason).find("101 bytes where at most 100") != std::string::npos);
    pair larger;
    std::array<std::byte, 10> into{};
    larger.peer.posted.insert({5, 11, into});
    CHECK(larger.comes(5, 20) == nullptr);
    CHECK(larger.lost == EMSGSIZE);
    CHECK(std::string(larger.peer.reason).find("20 bytes where 10 were due") != std::string::npos);
    pair early;
    REQUIRE(early.comes(5, 20) != nullptr);
    early.inbox.complete(early.peer, *early.lane.early, early.done, early.losing());
    CHECK(early.inbox.take(early.peer, {5, 11, into}, early.done, early.losing()));
    CHECK(early.lost == EMSGSIZE);
    CHECK(early.done.empty());
}

TEST_CASE("tcp_inbox: a frame of another job is dropped and counted, and its payload goes nowhere") {
    pair p;
    std::array<std::byte, 50> into{};
    p.peer.posted.insert({5, 11, into});
    CHECK(p.comes(5, 20, job + 1) == nullptr);
    CHECK(p.where.what == detail::landing::action::skip);
    CHECK(p.inbox.dropped() == 1);
    CHECK(p.comes(5, 20) == into.data()); // the receive is still there
}
