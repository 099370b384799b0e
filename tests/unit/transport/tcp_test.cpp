// herring: tests of transport/tcp.hpp; tests/conformance has the suite, tests/fault what goes wrong.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <chrono>
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
