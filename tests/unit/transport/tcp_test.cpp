// herring: tests of transport/tcp.hpp; tests/conformance has the suite, tests/fault what goes wrong.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

using namespace herring;

TEST_CASE("tcp: tuning is part of the type, and the loopback has its own") {
    using slow = transport::basic_tcp<transport::tcp_tuning{.chunk_bytes = 16_KiB, .window_bytes = 64_KiB}>;
    CHECK(slow::facts.tuning.chunk_bytes == 16_KiB);
    CHECK(slow::facts.same_host_tuning.chunk_bytes == transport::tcp::facts.same_host_tuning.chunk_bytes);
    CHECK(transport::tcp::facts.keeps_order);
    CHECK_FALSE(transport::basic_tcp<transport::tcp_tuning{.connections = 2}>::facts.keeps_order);
}

namespace {
using namespace std::chrono_literals;

/// Rank 1 leaves, in order, while rank 0 waits for a message of its; asleep, rank 0 is told, and sleeps on.
int one_leaves(world& ranks) {
    std::vector<int> const peers{1 - ranks.rank()};
    transport::tcp moved(
        ranks,
        {.peers = peers, .receives_per_peer = 4, .sends_per_peer = 4, .largest_message = 64, .timeout = 10s});
    if (ranks.rank() == 1) return 0;
    bool lost = false;
    for (time_point const until = clock::now() + 20s; !lost && clock::now() < until;) {
        moved.wait(clock::now() + 10s);
        moved.poll([&](completion const& c) noexcept { lost = lost || c.what == completion::lost; });
    }
    if (!lost) return 1;
    // No connection is left: a sleep ends soon, for whoever waits for another thing, and neither wake nor end of the
    // transport waits for one.
    time_point const before = clock::now();
    moved.wait(before + 10s);
    if (clock::now() - before > 5s) return 2;
    moved.wake();
    moved.wait(clock::now() + 10s);
    return 0;
}
} // namespace

TEST_CASE("tcp: a peer that leaves ends a sleep, and the next ones are short") {
    CHECK(launch(2, one_leaves) == 0);
}

namespace {
/// Ranks 1 and 2 have sent; rank 0 asks for what is of rank 2, and then for all.
int one_is_looked_at(world& ranks) {
    std::vector<int> const others{1, 2}, first{0};
    bool const waits = ranks.rank() == 0;
    transport::tcp moved(ranks, {.peers = waits ? others : first,
                                 .receives_per_peer = 4,
                                 .sends_per_peer = 4,
                                 .largest_message = 64,
                                 .timeout = 10s});
    std::byte bytes[2][64]{};
    if (!waits) {
        bool sent = false;
        if (!moved.post_send(peer_id::at(0), 7, std::span<std::byte const>(bytes[0], 64), 1)) return 1;
        while (!sent) moved.poll([&](completion const& c) noexcept { sent = c.what == completion::sent; });
        ranks.barrier();
        ranks.barrier();
        return 0;
    }
    for (std::size_t i = 0; i < 2; ++i)
        if (!moved.post_receive(peer_id::at(i), 7, std::span<std::byte>(bytes[i], 64), i)) return 2;
    ranks.barrier();
    std::vector<std::uint64_t> got;
    auto const take = [&](completion const& c) noexcept {
        if (c.what == completion::received) got.push_back(c.token);
    };
    time_point const until = clock::now() + 20s;
    while (got.empty() && clock::now() < until) moved.poll_from(peer_id::at(1), take);
    for (int i = 0; i < 1000; ++i) moved.poll_from(peer_id::at(1), take);
    if (got != std::vector<std::uint64_t>{1}) return 3;
    while (got.size() < 2 && clock::now() < until) moved.poll(take);
    ranks.barrier();
    return got == std::vector<std::uint64_t>{1, 0} ? 0 : 4;
}
} // namespace

TEST_CASE("tcp: a look at one peer reads nothing of the others, whose messages come with a look at all") {
    CHECK(launch(3, one_is_looked_at) == 0);
}

namespace {
/// Rank 1 sends what its kernel takes, and ends its transport, and then its world, before rank 0 has read any of it; what rank 0 sends
/// meanwhile it does not read.
int one_ends_early(world& ranks) {
    constexpr std::size_t bytes = 64 << 10, most = 512;
    std::vector<int> const peers{1 - ranks.rank()};
    std::optional<transport::tcp> made(std::in_place, ranks,
                                       transport_needs{.peers = peers,
                                                       .receives_per_peer = most,
                                                       .sends_per_peer = 4,
                                                       .largest_message = bytes,
                                                       .timeout = 10s});
    transport::tcp& moved = *made;
    std::vector<std::byte> data(bytes * (ranks.rank() == 0 ? most : 1));
    peer_id const other = peer_id::at(0);
    std::uint64_t whole = 0;
    if (ranks.rank() == 1) {
        for (bool full = false; !full && whole < most;) {
            bool sent = false;
            if (!moved.post_send(other, whole, data, whole)) return 1;
            for (time_point const until = clock::now() + 200ms; !sent && clock::now() < until;)
                moved.poll([&](completion const& c) noexcept { sent = sent || c.what == completion::sent; });
            full = !sent;
            whole += sent ? 1 : 0;
        }
        ranks.all_gather(std::as_bytes(std::span(&whole, 1)));
        ranks.barrier();
        made.reset();
        ranks.barrier();
        return 0;
    }
    auto const said = ranks.all_gather(std::as_bytes(std::span(&whole, 1)));
    std::memcpy(&whole, said[1].data(), sizeof whole);
    auto const send = [&] {
        bool sent = false;
        if (!moved.post_send(other, 7, std::span<std::byte const>(data.data(), 64), 1)) return;
        while (!sent)
            moved.poll([&](completion const& c) noexcept { sent = c.what != completion::received; });
    };
    send();
    ranks.barrier();
    ranks.barrier();
    send();
    std::uint64_t got = 0;
    bool lost = false;
    for (std::uint64_t i = 0; i < whole; ++i)
        if (!moved.post_receive(other, i, std::span(data).subspan(i * bytes, bytes), i)) return 2;
    for (time_point const until = clock::now() + 20s; !lost && clock::now() < until;)
        moved.poll([&](completion const& c) noexcept {
            got += c.what == completion::received ? 1 : 0;
            lost = lost || c.what == completion::lost;
        });
    return got == whole && whole > 0 ? 0 : 3;
}
} // namespace

TEST_CASE("tcp: what was sent arrives although its sender has ended, and does not read what comes in") {
    CHECK(launch(2, one_ends_early) == 0);
}
