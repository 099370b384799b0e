// herring: tests of ensemble/data_frames.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/data_frames.hpp"

#include "doctest/doctest.h"

#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

namespace ensemble_frame_sender_test {

using namespace herring::detail::ensembles;
using herring::detail::descriptor;

/// A socket that takes little at once, and what its other end has read.
struct small_pipe {
    descriptor to, from;
    std::vector<std::byte> read;

    small_pipe() {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
        to = descriptor(both[0]);
        from = descriptor(both[1]);
        int const least = 1; // the kernel makes its minimum of it
        ::setsockopt(to.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    }
    /// Reads what is there, `most` bytes of it.
    std::size_t take(std::size_t most = ~std::size_t{0}) {
        std::size_t all = 0;
        std::byte piece[4096];
        while (all < most) {
            ssize_t const got =
                ::recv(from.get(), piece, most - all < sizeof piece ? most - all : sizeof piece, 0);
            if (got <= 0) break;
            read.insert(read.end(), piece, piece + got);
            all += static_cast<std::size_t>(got);
        }
        return all;
    }
};

std::vector<std::byte> payload(std::size_t bytes, int seed) {
    std::vector<std::byte> out(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(seed));
    return out;
}
void add(std::vector<std::byte>& to, data_head const& head, std::vector<std::byte> const& bytes) {
    std::byte front[data_head_bytes];
    encode(head, front);
    to.insert(to.end(), front, front + data_head_bytes);
    to.insert(to.end(), bytes.begin(), bytes.end());
}
data_head head_of(std::uint64_t id, std::vector<std::byte> const& bytes) {
    return {.kind = data_kind::ask,
            .id = id,
            .remaining_us = 9,
            .bytes = static_cast<std::uint32_t>(bytes.size())};
}

/// Flushes, and keeps what has left and what was dropped.
struct events {
    std::vector<std::uint32_t> left;
    std::vector<std::uint64_t> dropped;

    int flush(frame_sender& sender, small_pipe const& pipe) {
        return sender.flush(
            pipe.to.get(), [&](std::uint32_t of) { left.push_back(of); },
            [&](std::uint64_t id) { dropped.push_back(id); });
    }
    /// Until nothing is queued.
    void flush_all(frame_sender& sender, small_pipe& pipe) {
        for (int rounds = 0; sender.queued() != 0 && rounds < 100000; ++rounds) {
            REQUIRE(flush(sender, pipe) == 0);
            pipe.take(1000);
        }
        REQUIRE(sender.queued() == 0);
        pipe.take();
    }
};

TEST_CASE("ensemble frame sender: messages leave in order, whatever the socket takes at once") {
    small_pipe pipe;
    frame_sender sender(40, 0);
    events seen;
    std::vector<std::vector<std::byte>> payloads;
    std::vector<std::byte> expected;
    for (std::uint64_t id = 0; id < 40; ++id) // more than leave in one call
        payloads.push_back(payload(id % 3 == 0 ? 0 : id * 331, static_cast<int>(id)));
    for (std::uint64_t id = 0; id < 40; ++id) {
        REQUIRE(sender.push(head_of(id, payloads[id]), payloads[id], static_cast<std::uint32_t>(100 + id)));
        add(expected, head_of(id, payloads[id]), payloads[id]);
    }
    CHECK_FALSE(sender.push(head_of(40, {}), {}, 140)); // full
    seen.flush_all(sender, pipe);
    CHECK(pipe.read == expected);
    REQUIRE(seen.left.size() == 40);
    for (std::uint32_t i = 0; i < 40; ++i) CHECK(seen.left[i] == 100 + i);
    CHECK(seen.dropped.empty());
}

TEST_CASE("ensemble frame sender: the rest of a payload that goes away is sent from the bounce buffer") {
    for (std::size_t const read_before : {0u, 20u, 5000u}) {
        small_pipe pipe;
        frame_sender sender(3, 300000);
        events seen;
        auto first = payload(300000, 1);
        auto const second = payload(500, 2), third = payload(700, 3);
        std::vector<std::byte> expected;
        add(expected, head_of(1, first), first);
        add(expected, head_of(3, third), third);

        REQUIRE(sender.push(head_of(1, first), first, 5));
        REQUIRE(seen.flush(sender, pipe) == 0);
        pipe.take(read_before);
        REQUIRE(sender.push(head_of(2, second), second, 6));
        REQUIRE(sender.push(head_of(3, third), third, 7));
        sender.withdraw(6); // its first byte has not left
        sender.withdraw(5);
        std::memset(first.data(), 0xEE, first.size());
        seen.flush_all(sender, pipe);
        CHECK(pipe.read == expected);
        CHECK(seen.left == std::vector<std::uint32_t>{7});
        CHECK(seen.dropped == std::vector<std::uint64_t>{2});
    }
}

TEST_CASE("ensemble frame sender: what has not begun when it goes away is not sent") {
    small_pipe pipe;
    frame_sender sender(4, 1000);
    events seen;
    auto const bytes = payload(1000, 1);
    REQUIRE(sender.push(head_of(1, bytes), bytes, 1)); // never flushed before
    REQUIRE(sender.push(head_of(2, bytes), bytes, 2));
    sender.withdraw(1);
    sender.withdraw(9); // nobody's
    seen.flush_all(sender, pipe);
    std::vector<std::byte> expected;
    add(expected, head_of(2, bytes), bytes);
    CHECK(pipe.read == expected);
    CHECK(seen.dropped == std::vector<std::uint64_t>{1});
    CHECK(seen.left == std::vector<std::uint32_t>{2});
}

TEST_CASE("ensemble frame sender: a closed socket is an error, and no signal") {
    small_pipe pipe;
    frame_sender sender(1, 0);
    events seen;
    pipe.from = descriptor();
    REQUIRE(sender.push(head_of(1, {}), {}, 1));
    CHECK(seen.flush(sender, pipe) == EPIPE);
    CHECK(seen.left.empty());
}

} // namespace ensemble_frame_sender_test
