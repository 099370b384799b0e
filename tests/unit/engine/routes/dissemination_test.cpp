// herring: tests of engine/routes/dissemination.hpp, over a network that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/dissemination.hpp"

#include "doctest/doctest.h"

#include "herring/session/construction.hpp"
#include "unit/engine/mesh.hpp"

#include <cstdint>
#include <vector>

namespace {

herring::exchange_tuning passing_on() {
    herring::exchange_tuning tuning = mesh::small_tuning();
    tuning.message_ns = 10;
    tuning.latency_ns = 1;
    tuning.dissemination_bytes = 128;
    return tuning;
}

template <class T> T value(int rank, std::uint64_t execution, std::size_t i) {
    return static_cast<T>((static_cast<std::size_t>(rank) * 7919 + execution * 104'729 + i * 31) % 100'003) *
           static_cast<T>(i % 3 == 0 ? 0.001 : 1000.0);
}

} // namespace

TEST_CASE("dissemination: every number of nodes, mixed with the other routes; bits of a serial fold") {
    std::vector<std::size_t> const sizes{1, 5, 16, 17, 32, 33, 48, 64, 100, 1000};
    for (auto const& shape : std::vector<std::vector<int>>{{1, 1, 1, 1},
                                                           {1, 1, 1, 1, 1},
                                                           {1, 1, 1, 1, 1, 1, 1},
                                                           {1, 1, 1, 1, 1, 1, 1, 1},
                                                           {2, 2, 2, 2},
                                                           {3, 3, 3, 3, 3}})
        for (std::uint32_t seed = 0; seed < 4; ++seed) {
            CAPTURE(shape.size());
            CAPTURE(seed);
            mesh::world_of<float> all(shape, sizes, passing_on(), seed, seed % 2 == 0 ? 0 : 20);
            REQUIRE(all.made.buckets[0].path == herring::route::dissemination);
            REQUIRE(all.made.buckets[5].path == herring::route::one_hop);
            CHECK(all.run(mesh::sequence(all.net, sizes.size(), 80), value<float>,
                          [&](std::uint64_t execution, std::size_t i) {
                              float total = 0;
                              for (int n = 0; n < all.map.nodes(); ++n) {
                                  float part = 0;
                                  for (int l = 0; l < all.map.local_size(n); ++l) {
                                      float const x = value<float>(all.map.rank_of(n, l), execution, i);
                                      part = l == 0 ? x : part + x;
                                  }
                                  total = n == 0 ? part : total + part;
                              }
                              return total;
                          }));
            if (seed % 2 == 0) CHECK(all.net.early() == 0);
            for (auto const& r : all.ranks) CHECK(r->runs->core().waiting_for().rank == -1);
            herring::transport_needs const announced = herring::detail::transport_needs_of(all.made, {});
            CHECK(all.net.most_sends() <= static_cast<int>(announced.sends_per_peer));
            CHECK(all.net.most_receives() <= static_cast<int>(announced.receives_per_peer));
            CHECK(all.net.largest() <= announced.largest_message);
        }
}

TEST_CASE("dissemination: no message is larger than announced, and one is as large") {
    for (int nodes = 4; nodes <= 17; ++nodes) {
        CAPTURE(nodes);
        herring::exchange_tuning tuning = passing_on();
        tuning.one_hop_bytes = 64; // below what is passed on
        mesh::world_of<float> all(std::vector<int>(static_cast<std::size_t>(nodes), 1), {32}, tuning, 1, 0);
        REQUIRE(all.made.buckets[0].path == herring::route::dissemination);
        REQUIRE(all.run(
            {0, 0, 0}, [](int, std::uint64_t, std::size_t) { return 1.0f; },
            [&](std::uint64_t, std::size_t) { return static_cast<float>(nodes); }));
        herring::transport_needs const announced = herring::detail::transport_needs_of(all.made, {});
        CHECK(all.net.largest() == all.made.dissemination_message_bytes());
        CHECK(all.net.largest() <= announced.largest_message);
        CHECK(all.net.most_receives() <= static_cast<int>(announced.receives_per_peer));
    }
}

TEST_CASE("dissemination: it sends ceil(log2 n) messages, where one hop sends n - 1, and as many bytes") {
    for (int nodes = 4; nodes < 12; ++nodes) {
        std::vector<int> const shape(static_cast<std::size_t>(nodes), 1);
        mesh::world_of<float> all(shape, {16}, passing_on(), 1, 0);
        std::uint64_t rounds = 0;
        while ((1 << rounds) < nodes) ++rounds;
        REQUIRE(all.run(
            {0}, [](int, std::uint64_t, std::size_t) { return 1.0f; },
            [&](std::uint64_t, std::size_t) { return static_cast<float>(nodes); }));
        for (auto const& r : all.ranks) {
            CHECK(r->runs->counters().messages_sent == rounds);
            CHECK(r->runs->counters().messages_received == rounds);
            CHECK(r->runs->counters().bytes_sent == static_cast<std::uint64_t>(nodes - 1) * 64);
        }
        CHECK(all.net.quiet());
    }
}

TEST_CASE("dissemination: it is taken where the messages saved cost more than the rounds that come on top") {
    auto const path = [](int nodes, std::uint32_t message_ns, std::uint32_t latency_ns) {
        herring::exchange_tuning tuning = passing_on();
        tuning.message_ns = message_ns;
        tuning.latency_ns = latency_ns;
        std::size_t const size[] = {16};
        return herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced>(
                   size, herring::topology::uniform(nodes, 1), 4, 4, tuning)
            .buckets[0]
            .path;
    };
    CHECK(path(2, 1000, 0) == herring::route::one_hop);       // one message either way
    CHECK(path(3, 1000, 1) == herring::route::one_hop);       // two messages either way
    CHECK(path(4, 100, 99) == herring::route::dissemination); // 2 in place of 3, one round more
    CHECK(path(4, 100, 100) == herring::route::one_hop);
    CHECK(path(16, 100, 366) == herring::route::dissemination); // 4 in place of 15, three rounds more
    CHECK(path(16, 100, 367) == herring::route::one_hop);
}

TEST_CASE("dissemination: it sends before it reads, then looks at the one peer that it waits for, now and "
          "then at all") {
    mesh::world_of<float> all({1, 1, 1, 1}, {16, 16}, passing_on(), 1, 0);
    auto& first = *all.ranks[0];
    std::vector<int>& looked_at = first.transport.looked_at;
    auto const polls = [&](int count) {
        for (; count > 0; --count) first.runs->poll();
    };
    all.submit(first, 0);
    polls(1);
    CHECK(looked_at.empty());
    CHECK(first.runs->core().peers[0].sends == 1); // rank 1, the pair of the first round
    polls(32);
    std::vector<int> fifteen_and_all(16, 1);
    fifteen_and_all.back() = -1;
    std::vector<int> expected = fifteen_and_all;
    expected.insert(expected.end(), fifteen_and_all.begin(), fifteen_and_all.end());
    CHECK(looked_at == expected);

    // Sockets can end a sleep that are not those of that peer: all are looked at then.
    looked_at.clear();
    polls(2);
    first.runs->core().sleep_on_transport({});
    polls(2);
    CHECK(looked_at == std::vector<int>{1, 1, -1, 1});

    // Two executions may wait for two peers.
    looked_at.clear();
    all.submit(first, 1);
    polls(20);
    CHECK(looked_at == std::vector<int>(20, -1));
}

TEST_CASE("dissemination: ranks in another operation are told, before anything of it is passed on") {
    for (std::size_t const odd : {std::size_t{1}, std::size_t{2}}) {
        mesh::world_of<float> all({1, 1, 1, 1}, {16, 32, 64}, passing_on(), 3, 0);
        for (auto& r : all.ranks) all.submit(*r, r->number == 2 ? odd : 0);
        for (int i = 0; i < 3000; ++i)
            for (auto& r : all.ranks) r->runs->poll();
        int told = 0;
        for (auto& r : all.ranks) {
            CHECK((r->runs->released() == 0 || r->runs->failed() != nullptr));
            if (herring::failure const* const why = r->runs->failed(); why != nullptr) {
                CHECK(why->what == herring::errc::mismatch);
                ++told;
            }
        }
        CHECK(told > 0);
    }
}
