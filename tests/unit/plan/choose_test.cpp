// herring: tests of plan/choose.hpp: closed forms of ways, and what is chosen by them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/choose.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>

using herring::choice;
using herring::choose;
using herring::links;
using herring::network_shape;
using herring::route;
using namespace herring::literals;

namespace {

/// 100 Gbit/s, 10 µs, 0.5 µs a message and end.
constexpr links fast{.latency_ns = 10'000, .send_ns = 500, .receive_ns = 500, .rate_mbit = 100'000};

} // namespace

TEST_CASE("choose: it is a constant expression, and its times are the closed forms") {
    constexpr choice small = choose({.nodes = 8}, 1'000'000, fast);
    static_assert(small.path == route::two_hop && small.servers == 8);
    CHECK(small.time_ns == 2 * (10'000 + 1'000) + 2 * 7 * 10'000); // 125,000 bytes to and from each
    CHECK(choose({.nodes = 64}, 1'000'000, fast).time_ns == 22'000 + 2 * 78'750);
    // Messages limit: half as many servers have fewer.
    choice const many = choose({.nodes = 256}, 1'000'000, fast);
    CHECK(many.servers == 128);
    CHECK(many.time_ns == (256 + 128 - 2) * 1'000);
    CHECK(many.next.time_ns > many.time_ns);
    CHECK(choose({.nodes = 256}, 256'000'000, fast).time_ns / 1000 == 40'822);
    choice const tiny = choose({.nodes = 64}, 64, fast);
    CHECK(tiny.path == route::one_hop);
    CHECK(tiny.time_ns == 63'000);
    links cheap = fast;
    cheap.latency_ns = 1'000;
    choice const rounds = choose({.nodes = 64}, 64, cheap);
    CHECK(rounds.path == route::dissemination);
    CHECK(rounds.time_ns == 6 * 2'000 + 63 * 64 * 8 / 100);
    CHECK(choose({.nodes = 64, .forwards = false}, 64, cheap).path == route::one_hop);
    // Between two nodes one hop is as much, in half the latency.
    CHECK(choose({.nodes = 2}, 16_MiB, fast).path == route::one_hop);
}

TEST_CASE("choose: racks with a slow uplink are two levels' case, for large buckets and small ones") {
    // 64 racks of 32 nodes, 100 GB/s a rack: 4:1. 2,048 nodes flat take 161 ms, two levels 45.
    links uplinks = fast;
    uplinks.rack_latency_ns = 10'000;
    uplinks.uplink_rate_mbit = 800'000;
    network_shape const racks{.nodes = 2048, .racks = 64};
    choice const large = choose(racks, 256'000'000, uplinks);
    CHECK(large.levels == 2);
    CHECK(large.time_ns / 1'000'000 == 44);
    CHECK(large.next.levels == 1);
    CHECK(large.next.time_ns / 1'000'000 == 161);
    choice const few = choose({.nodes = 256, .racks = 16}, 1'000'000, uplinks);
    CHECK(few.levels == 2);
    CHECK(few.time_ns < choose({.nodes = 256}, 1'000'000, fast).time_ns);
}

TEST_CASE("choose: the time grows with the bytes, whatever the links, and no sum overflows") {
    links slow{.latency_ns = 1'000'000'000, .send_ns = 1'000'000, .receive_ns = 1'000'000, .rate_mbit = 1};
    for (links const& by : {fast, slow, links{.rate_mbit = 1'000'000'000}})
        for (int const nodes : {2, 3, 8, 100, 2048}) {
            network_shape const shape{.nodes = nodes, .local_ranks = 8, .element_bytes = 2, .part_bytes = 4};
            std::uint64_t before = 0;
            for (std::size_t bytes = 1; bytes <= std::size_t{1} << 43; bytes *= 4) {
                choice const found = choose(shape, bytes, by);
                CAPTURE(bytes);
                CHECK(found.time_ns >= before);
                CHECK(found.next.time_ns >= found.time_ns);
                CHECK(found.servers >= 1);
                CHECK(found.servers <= nodes);
                CHECK(found.chunk_bytes >= 16_KiB);
                CHECK(found.chunk_bytes <= 256_KiB);
                CHECK(found.window_bytes >= 2 * found.chunk_bytes);
                CHECK(found.window_bytes <= 16 * found.chunk_bytes);
                before = found.time_ns;
            }
        }
}

TEST_CASE("choose: chunk and window follow from the cost of a message, the round trip and the queue") {
    CHECK(choose({.nodes = 4}, 0, fast).chunk_bytes == 120_KiB); // 10 us
    links slow = fast;
    slow.rate_mbit = 1'000;
    CHECK(choose({.nodes = 4}, 0, slow).chunk_bytes == 16_KiB);
    links far = fast; // 1 ms away: 12.5 MB on the wire
    far.latency_ns = 1'000'000;
    CHECK(choose({.nodes = 8}, 0, far).window_bytes == 16 * 120_KiB);
    CHECK(choose({.nodes = 8}, 0, fast).window_bytes == 2 * 120_KiB);
    links shallow = fast; // 2 · 7 chunks in 512 KiB and the 275 KB of the wire
    shallow.queue_bytes = 512_KiB;
    CHECK(choose({.nodes = 8}, 0, shallow).chunk_bytes == 52_KiB);
}

TEST_CASE("choose: where ranks share cores the total of messages counts, and one server has the fewest") {
    links const by{.latency_ns = 2'000, .send_ns = 2'500, .receive_ns = 2'500, .rate_mbit = 100'000};
    for (int nodes = 3; nodes <= 16; ++nodes) {
        choice const found = choose({.nodes = nodes, .cores = 1}, 64, by);
        CAPTURE(nodes);
        CHECK(found.path == route::two_hop);
        CHECK(found.servers == 1);
        CHECK(choose({.nodes = nodes, .cores = 64}, 64, by).path != route::two_hop);
    }
}
