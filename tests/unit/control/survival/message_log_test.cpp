// herring: tests of control/survival/message_log.hpp: connections that are lost at any byte, against a list of what was sent.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/survival/message_log.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace message_log_tests {

using herring::detail::byte_buffer;
namespace wire = herring::detail::wire;
using wire::message_kind;
using wire::message_log;

/// One direction of a connection: bytes that are on their way, and those of a message that has come in part.
struct one_way {
    byte_buffer on_its_way{}, come{};
    std::uint64_t number = 0; // of the last numbered message that came out
};

struct end {
    message_log log{};
    std::vector<std::uint64_t> sent{}, taken{};
};

void write(one_way& to, message_kind type, std::uint64_t sequence, std::span<std::byte const> body) {
    wire::append_message(to.on_its_way, type, 0, sequence, body);
}

/// A numbered message of a random size.
void say(end& from, one_way& over, std::mt19937& draw) {
    std::vector<std::byte> const body(draw() % 40);
    std::uint64_t const next = from.sent.size() + 1;
    from.sent.push_back(next);
    from.log.keep(message_kind::contribute, next, body);
    write(over, message_kind::contribute, next, body);
}

/// So many bytes arrive; whole messages are taken, heartbeats acknowledge.
void arrive(end& at, one_way& over, std::size_t bytes) {
    bytes = std::min(bytes, over.on_its_way.size());
    over.come.append(std::span<std::byte const>(over.on_its_way).first(bytes));
    over.on_its_way.drop(bytes);
    while (true) {
        wire::head h;
        if (over.come.size() < wire::head_bytes || !h.read(over.come)) return;
        if (over.come.size() < wire::head_bytes + h.length) return;
        over.come.drop(wire::head_bytes + h.length);
        if (h.type == message_kind::heartbeat)
            REQUIRE(at.log.acknowledge(h.sequence));
        else if (at.log.take(++over.number))
            at.taken.push_back(h.sequence);
    }
}

/// `to_rank` and `to_0` are lost with all that is on its way; what replaces them carries on, as coordinator and participant do it.
void resume(end& rank_0, end& rank, one_way& to_0, one_way& to_rank, std::mt19937& draw) {
    std::uint64_t const offered = rank.log.taken(); // said over the new connection
    to_0 = {};                                      // whatever rank 0 has not read by now
    for (unsigned turns = draw() % 4; turns > 0; --turns)
        arrive(rank, to_rank, draw() % 200); // the old one speaks on
    REQUIRE(rank_0.log.has_all_after(offered));
    REQUIRE(rank_0.log.acknowledge(offered));
    one_way next_to_rank{}, next_to_0{};
    next_to_rank.number = offered;
    next_to_0.number = rank_0.log.taken();
    rank_0.log.repeat(
        [&](message_log::message const& m) { write(next_to_rank, m.type, m.sequence, m.body); });
    arrive(rank, to_rank, draw() % 200);
    REQUIRE(rank.log.acknowledge(next_to_0.number));
    REQUIRE(rank.log.has_all());
    rank.log.repeat([&](message_log::message const& m) { write(next_to_0, m.type, m.sequence, m.body); });
    to_0 = std::move(next_to_0);
    to_rank = std::move(next_to_rank);
}

TEST_CASE("message_log: connections are lost at any byte, and every message is taken once, in order") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        std::mt19937 draw(seed);
        end rank_0{}, rank{};
        one_way to_0{}, to_rank{};
        for (int turn = 0; turn < 200; ++turn) switch (draw() % 9) {
            case 0:
            case 1:
                say(rank_0, to_rank, draw);
                break;
            case 2:
            case 3:
                say(rank, to_0, draw);
                break;
            case 4:
                arrive(rank, to_rank, draw() % 300);
                break;
            case 5:
                arrive(rank_0, to_0, draw() % 300);
                break;
            case 6:
                write(to_rank, message_kind::heartbeat, rank_0.log.taken(), {});
                break;
            case 7:
                write(to_0, message_kind::heartbeat, rank.log.taken(), {});
                break;
            default:
                if (draw() % 3 == 0) resume(rank_0, rank, to_0, to_rank, draw);
            }
        resume(rank_0, rank, to_0, to_rank, draw);
        arrive(rank, to_rank, to_rank.on_its_way.size());
        arrive(rank_0, to_0, to_0.on_its_way.size());
        REQUIRE(rank.taken == rank_0.sent);
        REQUIRE(rank_0.taken == rank.sent);
    }
}

TEST_CASE("message_log: what is kept is bounded, and it is known what is missing") {
    message_log log;
    std::vector<std::byte> const body(10'000);
    std::uint64_t sent = 0;
    auto const keep = [&](std::span<std::byte const> what) {
        log.keep(message_kind::contribute, ++sent, what);
    };
    auto const kept = [&] {
        std::size_t bytes = 0;
        log.repeat([&](message_log::message const& m) { bytes += wire::head_bytes + m.body.size(); });
        return bytes;
    };
    while (log.has_all()) {
        keep(body);
        REQUIRE(kept() <= message_log::most_bytes);
    }
    CHECK(sent == message_log::most_bytes / (body.size() + wire::head_bytes) + 1);
    CHECK_FALSE(log.has_all_after(0));
    CHECK(log.has_all_after(1));
    REQUIRE(log.acknowledge(1));
    CHECK(log.has_all());

    keep(std::vector<std::byte>(message_log::most_bytes));
    CHECK(kept() == 0);
    CHECK_FALSE(log.has_all());
    keep(body);
    CHECK(kept() == body.size() + wire::head_bytes);
    REQUIRE(log.acknowledge(sent - 1));
    CHECK(log.has_all());
    std::uint64_t first = 0;
    log.repeat([&](message_log::message const& m) { first = m.sequence; });
    CHECK(first == sent);
    REQUIRE(log.acknowledge(sent));
    CHECK(kept() == 0);
}

TEST_CASE(
    "message_log: nobody acknowledges what was not sent, and older acknowledgements take nothing back") {
    message_log log;
    CHECK_FALSE(log.acknowledge(1));
    CHECK_FALSE(log.has_all_after(1));
    for (std::uint64_t n = 1; n <= 3; ++n) log.keep(message_kind::probe, n, {});
    CHECK(log.acknowledge(2));
    CHECK(log.acknowledge(0));
    CHECK_FALSE(log.acknowledge(4));
    CHECK_FALSE(log.has_all_after(~std::uint64_t{0}));
    CHECK_FALSE(log.has_all_after(0));
    std::vector<std::uint64_t> left;
    log.repeat([&](message_log::message const& m) { left.push_back(m.sequence); });
    CHECK(left == std::vector<std::uint64_t>{3});
}

} // namespace message_log_tests
