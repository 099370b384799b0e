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
