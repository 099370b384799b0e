// herring: tests of engine/engine.hpp: engines of many ranks in one thread, over a network without manners.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/engine.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include "herring/session/construction.hpp"
#include "herring/update/rules.hpp"

#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using tensors = std::vector<std::size_t>;

// On each side of every threshold of small_tuning(), for 4-byte elements, and nothing at all.
tensors const all_sizes{0, 1, 15, 16, 17, 32, 33, 48, 49, 64, 65, 100, 128, 129, 333, 1000, 2047};

std::vector<std::vector<int>> const shapes{
    {1}, {2}, {3}, {4}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1}, {2, 2}, {1, 2}, {3, 1, 2}, {2, 3}, {4, 4}};

std::int32_t draw(int rank, std::uint64_t execution, std::size_t i) {
    return static_cast<std::int32_t>(
        (static_cast<std::uint64_t>(rank) * 7919 + execution * 104'729 + i * 31) % 100'003);
}

template <class T>
T real(int rank, std::uint64_t execution, std::size_t i) { // sums of these depend on their order
    return static_cast<T>(static_cast<float>(draw(rank, execution, i)) * (i % 3 == 0 ? 1e-3f : 1e3f) - 7.7f);
}

} // namespace

TEST_CASE("engine: every shape, every route, any order of messages, refusals, ranks far apart") {
    for (auto const& shape : shapes)
        for (std::uint32_t seed = 0; seed < 4; ++seed) {
            CAPTURE(shape.size());
            CAPTURE(shape[0]);
            CAPTURE(seed);
            int const refusals = seed % 2 == 0 ? 0 : 20;
            mesh::world_of<std::int32_t> all(shape, all_sizes, mesh::small_tuning(), seed, refusals);
            int const ranks = all.map.size();
            CHECK(all.run(mesh::sequence(all.net, all_sizes.size(), 60), draw,
                          [&](std::uint64_t execution, std::size_t i) {
                              std::int32_t sum = 0;
                              for (int r = 0; r < ranks; ++r) sum += draw(r, execution, i);
                              return sum;
                          }));
            for (auto const& r : all.ranks) {
                CHECK(r->runs->counters().operations == 60);
                CHECK(r->runs->core().waiting_for().rank == -1);
            }
            if (refusals == 0) CHECK(all.net.early() == 0); // every receive stands before its message is sent
            // What the reducer tells the transport to be ready for.
            herring::transport_needs const announced = herring::detail::transport_needs_of(all.made, {});
            CHECK(all.net.most_sends() <= static_cast<int>(announced.sends_per_peer));
            CHECK(all.net.most_receives() <= static_cast<int>(announced.receives_per_peer));
            CHECK(all.net.largest() <= announced.largest_message);
        }
}

TEST_CASE(
    "engine: contributions are combined in the order of ranks of a node, then of nodes, and rounded once") {
    auto const check = []<class T>(T) {
        for (auto const& shape : shapes) {
            CAPTURE(shape.size());
            CAPTURE(shape[0]);
            mesh::world_of<T, herring::update::average> all(shape, all_sizes, mesh::small_tuning(), 5, 5);
            using accumulator = herring::accumulator<T>;
            CHECK(all.run(mesh::sequence(all.net, all_sizes.size(), 40), real<T>,
                          [&](std::uint64_t execution, std::size_t i) {
                              accumulator total{};
                              for (int n = 0; n < all.map.nodes(); ++n) {
                                  accumulator part{};
                                  for (int l = 0; l < all.map.local_size(n); ++l) {
                                      accumulator const x = static_cast<accumulator>(
                                          real<T>(all.map.rank_of(n, l), execution, i));
                                      part = l == 0 ? x : part + x;
                                  }
                                  total = n == 0 ? part : total + part;
                              }
                              return static_cast<T>(total / static_cast<accumulator>(all.map.size()));
                          }));
        }
    };
    check(float{});
    check(herring::bfloat16{});
}

TEST_CASE("engine: a long run of one route at a time") {
    herring::exchange_tuning tuning = mesh::small_tuning();
    auto const check = [&](tensors const& sizes, std::vector<int> const& shape, herring::route expected) {
        mesh::world_of<std::int32_t, herring::update::max> all(shape, sizes, tuning, 3, 10);
        for (herring::bucket const& b : all.made.buckets) CHECK(b.path == expected);
        int const ranks = all.map.size();
        CHECK(all.run(mesh::sequence(all.net, sizes.size(), 300), draw,
                      [&](std::uint64_t execution, std::size_t i) {
                          std::int32_t most = draw(0, execution, i);
                          for (int r = 1; r < ranks; ++r) most = std::max(most, draw(r, execution, i));
                          return most;
                      }));
    };
    check({1, 2, 3, 4, 5, 6, 7, 8}, {5}, herring::route::mailbox);
    check({100, 200, 300, 400, 500, 600, 700}, {3}, herring::route::local);
    check({1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1}, herring::route::one_hop);
    check({1, 17, 33, 40, 48, 6, 7, 8}, {2, 3}, herring::route::one_hop);
    check({100, 200, 300, 400, 500, 600, 700}, {1, 1, 1}, herring::route::two_hop);
    check({100, 200, 300, 400, 500, 600, 700}, {2, 3}, herring::route::two_hop);
    tuning.one_hop_bytes_two_nodes = 4096; // several chunks in one hop
    check({100, 200, 300, 400, 500, 600, 700}, {2, 3}, herring::route::one_hop);
}

TEST_CASE("engine: messages and bytes are as many as the routes say") {
    // One hop: everything to everyone. Two hops: 2(n-1)/n of the bucket.
    mesh::world_of<float> all({1, 1, 1, 1}, {16, 4096}, mesh::small_tuning(), 1, 0);
    auto const one = [](int, std::uint64_t, std::size_t) { return 1.0f; };
    auto const four = [](std::uint64_t, std::size_t) { return 4.0f; };
    REQUIRE(all.run({0}, one, four));
    for (auto const& r : all.ranks) {
        herring::counters const c = r->runs->counters();
        CHECK(c.messages_sent == 3);
        CHECK(c.messages_received == 3);
        CHECK(c.bytes_sent == 3 * 64);
    }
    REQUIRE(all.run({1}, one, four));
    for (auto const& r : all.ranks) {
        herring::counters const c = r->runs->counters();
        CHECK(c.bytes_sent == 3 * 64 + 2 * 3 * 4096);
        CHECK(c.bytes_received == 3 * 64 + 2 * 3 * 4096);
        CHECK(c.messages_sent == 3 + 2 * 3 * 16);
        CHECK(c.operations == 2);
    }
    CHECK(all.net.quiet());
}

TEST_CASE("engine: whom it waits for") {
    mesh::world_of<float> all({2, 1}, {16, 4096}, mesh::small_tuning(), 1, 0);
    // Ranks 0 and 2 share a node.
    REQUIRE(all.map.node_of == std::vector<int>{0, 1, 0});
    auto& first = *all.ranks[0];
    CHECK(first.runs->core().waiting_for().rank == -1);
    all.submit(first, 0);
    for (int i = 0; i < 100; ++i) first.runs->poll();
    CHECK(first.runs->core().waiting_for().rank == 2);
    all.submit(*all.ranks[2], 0);
    for (int i = 0; i < 100; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    CHECK(first.runs->core().waiting_for().rank == 1);
    CHECK(first.runs->released() == 0);
    all.submit(*all.ranks[1], 0);
    for (int i = 0; i < 1000; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    CHECK(first.runs->core().waiting_for().rank == -1);
    CHECK(first.runs->released() == 1);
}

TEST_CASE(
    "engine: it waits for who is late in the oldest execution, not for who has not come to a younger one") {
    mesh::world_of<float> all({2, 1}, {16, 4096}, mesh::small_tuning(), 1, 0);
    auto& first = *all.ranks[0];
    // Rank 1, of the other node, is late for execution 0; then rank 2, of this node, for execution 1.
    for (auto* r : {&first, all.ranks[2].get()}) all.submit(*r, 1);
    for (int i = 0; i < 100; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    CHECK(first.runs->core().waiting_for().rank == 1);
    all.submit(first, 0);
    for (int i = 0; i < 100; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    CHECK(first.runs->core().waiting_for().rank == 1);
}

TEST_CASE("engine: a lost peer is a suspicion as soon as it is needed, and not before") {
    for (std::size_t const bucket : {std::size_t{0}, std::size_t{1}}) {
        mesh::world_of<float> all({1, 1, 1}, {16, 4096}, mesh::small_tuning(), 1, 0);
        all.net.lose(2);
        for (int i = 0; i < 100; ++i)
            for (int r : {0, 1}) all.ranks[static_cast<std::size_t>(r)]->runs->poll();
        CHECK(all.ranks[0]->runs->core().failures.suspicion.what == herring::errc::ok);
        for (int r : {0, 1}) all.submit(*all.ranks[static_cast<std::size_t>(r)], bucket);
        for (int i = 0; i < 1000; ++i)
            for (int r : {0, 1}) all.ranks[static_cast<std::size_t>(r)]->runs->poll();
        for (int r : {0, 1}) {
            herring::failure const& why =
                all.ranks[static_cast<std::size_t>(r)]->runs->core().failures.suspicion;
            CHECK(why.what == herring::errc::peer_lost);
            CHECK(why.peer == 2);
            CHECK(why.text == std::string("the mesh lost it"));
            CHECK(all.ranks[static_cast<std::size_t>(r)]->runs->released() == 0);
            CHECK(all.ranks[static_cast<std::size_t>(r)]->runs->failed() == nullptr);
        }
    }
}

TEST_CASE("engine: ranks that submit different things") {
    auto const run = [](std::vector<int> const& shape, tensors const& sizes) {
        mesh::world_of<float> all(shape, sizes, mesh::small_tuning(), 1, 0);
        for (std::size_t r = 0; r < all.ranks.size(); ++r) all.submit(*all.ranks[r], r == 1 ? 1 : 0);
        for (int i = 0; i < 2000; ++i)
            for (auto& r : all.ranks) r->runs->poll();
        int told = 0;
        for (auto& r : all.ranks) {
            CHECK((r->runs->released() == 0 || r->runs->failed() != nullptr));
            if (herring::failure const* const why = r->runs->failed(); why != nullptr) {
                CHECK(why->what == herring::errc::mismatch);
                CHECK(why->peer >= 0);
                CHECK(all.worlds[0].failed() != nullptr); // announced
                ++told;
            }
        }
        CHECK(told > 0);
    };
    run({3}, {10, 20});        // mailboxes
    run({2}, {1000, 1100});    // in place
    run({1, 1}, {10, 20});     // one hop
    run({1, 1}, {1000, 1100}); // two hops
    run({2, 2}, {1000, 1100});
}

TEST_CASE("engine: after a failure nothing moves, and the first one stays") {
    mesh::world_of<float> all({1, 1}, {16}, mesh::small_tuning(), 1, 0);
    auto& r = *all.ranks[0];
    r.runs->fail(herring::failure::make(herring::errc::timeout, 0, 1, "wait", "first"), false);
    r.runs->fail(herring::failure::make(herring::errc::internal, 0, 1, "wait", "second"));
    REQUIRE(r.runs->failed() != nullptr);
    CHECK(r.runs->failed()->text == std::string("first"));
    CHECK(all.worlds[0].failed() == nullptr);
    all.submit(r, 0);
    CHECK(r.runs->poll() == 0);
    CHECK(r.runs->requested() == 1);
}

TEST_CASE("engine: the account of one wait") {
    mesh::world_of<float> all({1, 1, 1}, {16}, mesh::small_tuning(), 1, 0);
    auto& e = *all.ranks[0]->runs;
    CHECK(e.counters().slowest_rank == -1);
    e.core().record_wait(1, 100);
    e.core().record_wait(2, 300);
    e.core().record_wait(1, 150);
    e.core().record_wait(-1, 1000);
    e.finish_wait_stats();
    CHECK(e.counters().slowest_rank == 2);
    CHECK(e.counters().slowest_ns == 300);
    CHECK(e.counters().wait_ns == 1550);
    e.finish_wait_stats();
    CHECK(e.counters().slowest_rank == -1);
    CHECK(e.counters().slowest_ns == 0);
}
