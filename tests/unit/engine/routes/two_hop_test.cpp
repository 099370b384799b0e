// herring: tests of engine/routes/two_hop.hpp; engine_test.cpp runs it over a network that keeps no order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/routes/two_hop.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include "unit/engine/mesh.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

/// Ranks share two cores: buckets up to 128 bytes go to one server, which would else be forwarded.
herring::exchange_tuning on_two_cores() {
    herring::exchange_tuning tuning = mesh::small_tuning();
    tuning.message_ns = 10;
    tuning.latency_ns = 0;
    tuning.dissemination_bytes = 128;
    tuning.whole_bytes = 128;
    tuning.shared_cores = 2;
    return tuning;
}

float value(int rank, std::uint64_t execution, std::size_t i) {
    return static_cast<float>((static_cast<std::size_t>(rank) * 7919 + execution * 104'729 + i * 31) %
                              100'003) *
           (i % 3 == 0 ? 0.001f : 1000.0f);
}

/// All nodes contribute and serve; the first two a share each, every other one three.
struct lopsided {
    using axis = herring::axes::placement;
    static constexpr char const* name = "lopsided";
    static constexpr herring::placement_facts facts{};
    static herring::roles assign(herring::topology const& map) {
        herring::roles all = herring::roles::both(map.nodes());
        for (int n = 0; n < map.nodes(); ++n) all.shares.push_back(n < 2 ? 1 : 3);
        return all;
    }
};
using lopsided_world = mesh::world_of<std::int32_t, herring::update::sum, lopsided>;

} // namespace

TEST_CASE("two_hop_windows: a push of no execution comes as the next one, and its send is counted") {
    mesh::world_of<std::int32_t> all({1, 1, 1}, {4096}, mesh::small_tuning(), 2, 0);
    for (auto& one : all.ranks) all.submit(*one, 0);
    REQUIRE(all.settle());
    auto& core = all.ranks[0]->runs->core();
    std::uint64_t const before = core.counters().messages_sent;
    std::array<std::byte, 64> const last{};
    REQUIRE(core.send_unanswered(core, 1, 77, last));
    CHECK(core.peers[1].sends == 1);
    for (int i = 0; i < 200 && core.peers[1].sends > 0; ++i) core.poll_transport();
    CHECK(core.peers[1].sends == 0);
    CHECK(core.counters().messages_sent == before + 1);
    CHECK_FALSE(core.ledger.is_pending(core.ledger.submitted()));
    auto& server = all.ranks[static_cast<std::size_t>(core.peers[1].rank)]->runs->core();
    for (int i = 0; i < 200; ++i) server.poll_transport();
    REQUIRE(server.peers[0].rank == 0);
    herring::detail::two_hop_windows const& windows = server;
    herring::detail::arrival const& got = windows.pairs[0].served.arrived();
    CHECK(got.here);
    CHECK(got.bytes == last.size());
    CHECK(got.fingerprint == 77);
}

TEST_CASE("two_hop_route: a rank pushes a window to each server, and no more before results come") {
    mesh::world_of<std::int32_t> all({1, 1, 1}, {4096}, mesh::small_tuning(), 2, 0);
    REQUIRE(all.made.buckets[0].path == herring::route::two_hop);
    auto& first = *all.ranks[0];
    all.submit(first, 0);
    for (int i = 0; i < 200; ++i) first.runs->poll();
    CHECK(all.made.window() == 3);
    CHECK(all.net.most_sends() == 3);
    CHECK(first.runs->counters().messages_sent ==
          2 * 3); // both servers take them in, and wait for the others
    CHECK(first.runs->counters().messages_received == 0);
    CHECK(first.runs->core().waiting_for().rank > 0);
    for (int r : {1, 2}) all.submit(*all.ranks[static_cast<std::size_t>(r)], 0);
    for (int i = 0; i < 5000; ++i)
        for (auto& r : all.ranks) r->runs->poll();
    for (auto& r : all.ranks) CHECK(r->runs->released() == 1);
    CHECK(all.net.early() == 0);
    CHECK(all.net.quiet());
}

TEST_CASE("two_hop_route: an idle poll looks at no peer, and one that follows a result at its server alone") {
    mesh::world_of<std::int32_t> all({1, 1, 1, 1, 1}, {4096, 4096}, mesh::small_tuning(), 2, 0);
    auto& first = *all.ranks[0];
    herring::detail::two_hop_windows& windows = first.runs->core();
    all.submit(first, 0);
    for (int i = 0; i < 200; ++i) first.runs->poll();
    REQUIRE(first.runs->counters().messages_sent == 4 * 3); // a window to each, and all wait for the others
    CHECK(windows.ready.size() == 0);
    for (auto& r : all.ranks)
        if (r->number > 0) all.submit(*r, 0);
    std::size_t most = 0; // peers that could be pushed to after a poll
    for (int i = 0; i < 5000; ++i)
        for (auto& r : all.ranks) {
            r->runs->poll();
            herring::detail::two_hop_windows const& of_rank = r->runs->core();
            most = std::max(most, of_rank.ready.size());
        }
    CHECK(most == 0);
    for (auto& r : all.ranks) CHECK(r->runs->released() == 1);
    // Of many peers whose results are missing the first one says all, unless one is lost.
    all.submit(first, 1);
    for (int i = 0; i < 200; ++i) first.runs->poll();
    int asked = 0;
    auto const ask = [&](std::size_t, std::uint64_t, char const*) { return ++asked < 2; };
    windows.awaited(ask);
    CHECK(asked == 2);
    int const whom = first.runs->core().waiting_for().rank;
    all.net.lose(4);
    for (int i = 0; i < 200; ++i) first.runs->poll();
    CHECK(first.runs->core().failures.suspicion.what == herring::errc::ok);
    CHECK(first.runs->core().waiting_for().rank == whom);
    CHECK(first.runs->core().failures.suspicion.peer == 4);
}

TEST_CASE("two_hop_route: servers of unequal shares get theirs in proportion: no rank is done with the small "
          "ones first") {
    for (std::uint32_t seed = 1; seed <= 20 / HERRING_TEST_PART; ++seed) {
        CAPTURE(seed);
        lopsided_world all({1, 1, 1, 1}, {16384}, mesh::small_tuning(), seed, 0);
        std::vector<std::uint64_t> chunks; // of each server
        for (herring::shard const& s : all.made.shards) chunks.push_back(s.chunks);
        REQUIRE(chunks == std::vector<std::uint64_t>{32, 32, 96, 96});
        for (auto& r : all.ranks) all.submit(*r, 0);
        std::uint64_t furthest = 0; // chunks of a small share that a rank pushed more than in proportion
        for (std::size_t turn = 0; turn < 400'000; ++turn) {
            auto& r = *all.ranks[all.net.pick(4)];
            r.runs->poll();
            auto const pushed = [&](std::size_t server) {
                for (std::size_t i = 0; i < r.peers.size(); ++i)
                    if (r.peers[i] == static_cast<int>(server))
                        return static_cast<herring::detail::two_hop_windows const&>(r.runs->core())
                            .pairs[i]
                            .pushes.next();
                return chunks[server]; // its own
            };
            std::uint64_t const large = std::min(pushed(2), pushed(3)) / 3;
            for (std::size_t server : {0u, 1u})
                if (r.number != static_cast<int>(server) && pushed(server) > large)
                    furthest = std::max(furthest, pushed(server) - large);
            if (std::all_of(all.ranks.begin(), all.ranks.end(),
                            [](auto const& one) { return one->runs->released() == 1; }))
                break;
        }
        for (auto& r : all.ranks) CHECK(r->runs->released() == 1);
        CHECK(furthest <= all.made.window());
        CHECK(all.net.quiet());
    }
}

TEST_CASE("two_hop_route: in the order of shares no ranks wait for each other, whatever they submit when") {
    for (std::uint32_t seed = 1; seed <= 12 / HERRING_TEST_PART; ++seed)
        for (std::vector<int> const& nodes : {std::vector<int>{1, 1, 1, 1}, {2, 1, 3}, {1, 2, 2, 4, 1}}) {
            CAPTURE(seed);
            lopsided_world all(nodes, {5000, 7, 1024, 640, 3000}, mesh::small_tuning(), seed, 20);
            std::vector<std::size_t> sequence;
            for (int i = 0; i < 25; ++i) sequence.push_back(all.net.pick(5));
            auto const value = [](int rank, std::uint64_t execution, std::size_t i) {
                return static_cast<std::int32_t>(1000 * rank + 7 * static_cast<int>(execution) +
                                                 static_cast<int>(i % 91));
            };
            auto const expected = [&](std::uint64_t execution, std::size_t i) {
                std::int32_t sum = 0;
                for (int r = 0; r < all.map.size(); ++r) sum += value(r, execution, i);
                return sum;
            };
            CHECK(all.run(sequence, value, expected));
            for (auto& r : all.ranks) all.submit_as<herring::operations::all_gather>(*r, 0);
            CHECK(all.settle());
            for (auto& r : all.ranks)
                all.submit_as<herring::operations::reduce_scatter<std::int32_t, herring::update::sum>>(*r, 4);
            CHECK(all.settle());
        }
}

TEST_CASE("two_hop_route: a receive that was refused at the start is posted before the first answer") {
    using herring::detail::message;
    struct {
        std::vector<int> peers{7};
        std::size_t room = 1; // receives that are not refused
        bool sends = false;
        int required = 0;
        std::vector<std::uint64_t> posted{}, answered{};
        bool receive(std::size_t, message, std::uint64_t number, std::span<std::byte>, std::size_t slot) {
            CHECK(slot == number % 3);
            if (posted.size() == room) return false;
            posted.push_back(number);
            return true;
        }
        bool send(std::size_t, message, std::uint64_t number, std::span<std::byte const>, std::size_t,
                  std::uint64_t) {
            if (sends) answered.push_back(number);
            return sends;
        }
        void require_peer(int peer) { required += peer; }
    } core;
    herring::detail::serve_window window(3);
    std::byte memory[3 * 4];
    herring::detail::slot_row const rows{memory, 4};
    auto const answer = [&] {
        return answer_push(core, 0, window, rows, message::push, message::result, {}, 5);
    };
    CHECK(!post_pushes(core, 0, window, rows, message::push, window.size()));
    window.arrives(0, {4, 0, 0, true});
    CHECK(!answer());
    CHECK(core.required == 7); // its receives come before an answer
    CHECK(!window.arrived().here);
    core.room = 100;
    CHECK(!answer());
    CHECK(core.posted == std::vector<std::uint64_t>{0, 1, 2, 3});
    core.sends = true;
    CHECK(answer());
    CHECK(core.posted.size() == 4); // once
    window.arrives(1, {4, 0, 0, true});
    CHECK(answer());
    CHECK(core.posted.back() == 4);
    CHECK(core.answered == std::vector<std::uint64_t>{0, 1});
    CHECK(core.required == 7);
}

TEST_CASE("two_hop_route: on few cores small buckets go to one server each, mixed with the other routes; "
          "bits of a serial "
          "fold") {
    std::vector<std::size_t> const sizes{1, 5, 16, 17, 32, 33, 48, 64, 100, 1000};
    for (auto const& shape : std::vector<std::vector<int>>{
             {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2}, {1, 3, 2}})
        for (std::uint32_t seed = 0; seed < 4; ++seed) {
            CAPTURE(shape.size());
            CAPTURE(seed);
            mesh::world_of<float> all(shape, sizes, on_two_cores(), seed, seed % 2 == 0 ? 0 : 20);
            REQUIRE(all.made.buckets[0].path == herring::route::two_hop);
            REQUIRE(all.made.buckets[0].shards == 1);
            REQUIRE(all.made.buckets[5].path == herring::route::one_hop);
            CHECK(all.run(mesh::sequence(all.net, sizes.size(), 80), value,
                          [&](std::uint64_t execution, std::size_t i) {
                              float total = 0;
                              for (int n = 0; n < all.map.nodes(); ++n) {
                                  float part = 0;
                                  for (int l = 0; l < all.map.local_size(n); ++l) {
                                      float const x = value(all.map.rank_of(n, l), execution, i);
                                      part = l == 0 ? x : part + x;
                                  }
                                  total = n == 0 ? part : total + part;
                              }
                              return total;
                          }));
            if (seed % 2 == 0) CHECK(all.net.early() == 0);
        }
}

TEST_CASE("two_hop_route: on few cores a small bucket takes 2 (n - 1) messages in all, a broadcast too, and "
          "servers take "
          "turns") {
    for (int nodes = 3; nodes < 8; ++nodes) {
        CAPTURE(nodes);
        auto const count = static_cast<std::size_t>(nodes);
        auto const others = static_cast<std::uint64_t>(nodes - 1);
        mesh::world_of<float> all(std::vector<int>(count, 1), std::vector<std::size_t>(count, 16),
                                  on_two_cores(), 1, 0);
        for (std::size_t b = 0; b < count; ++b) {
            REQUIRE(all.made.buckets[b].shards == 1);
            CHECK(all.made.shards[b].server == herring::server_id::at(b));
            for (auto& r : all.ranks) all.submit(*r, b);
            REQUIRE(all.settle());
            for (auto const& r : all.ranks) // as many as it has pushed, and what it has answered
                CHECK(r->runs->counters().messages_sent ==
                      b + (static_cast<std::size_t>(r->number) > b ? 1 : others));
        }
        for (int root = 0; root < nodes; ++root) {
            std::uint64_t before = 0, after = 0;
            for (auto& r : all.ranks) before += r->runs->counters().messages_sent;
            for (auto& r : all.ranks) all.submit_as<herring::operations::broadcast>(*r, 0, root);
            REQUIRE(all.settle());
            for (auto& r : all.ranks) after += r->runs->counters().messages_sent;
            CHECK(after - before == 2 * others);
        }
        CHECK(all.net.quiet());
    }
}

TEST_CASE(
    "two_hop_route: of a small bucket a rank looks at the one peer that it waits for, now and then at all") {
    mesh::world_of<float> all({1, 1, 1, 1}, {16, 1000}, on_two_cores(), 1, 0);
    auto const looks_of = [&](int number, std::size_t bucket) -> std::vector<int> {
        auto& one = *all.ranks[static_cast<std::size_t>(number)];
        all.submit(one, bucket);
        for (int i = 0; i < 33; ++i) one.runs->poll();
        return one.transport.looked_at;
    };
    std::vector<int> expected(32, 0); // the server
    expected[15] = expected[31] = -1;
    CHECK(looks_of(2, 0) == expected);
    expected.assign(32, 1); // the first of those whose parts are to come
    expected[15] = expected[31] = -1;
    CHECK(looks_of(0, 0) == expected);
    CHECK(looks_of(3, 1) == std::vector<int>(32, -1)); // it has a server each, and comes in from all at once
}
