// herring: tests of the list of routes in engine/machine.hpp, and of the windows that a core hands messages to: closed lists of routes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/machine.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace herring::detail;

namespace {

// A route of no use, by number: it writes down what it is told.
std::string told;

template <class Core, int Number> class listener {
  public:
    explicit listener(Core&) noexcept {}
    void open() noexcept { told += "open" + std::to_string(Number) + " "; }
    std::size_t step(wanted_work& wanted) noexcept {
        told += "step" + std::to_string(Number) + " ";
        if (wants == Number) wanted.make_part_of(0, {}, nullptr);
        return 10;
    }
    static constexpr std::uint32_t cursors() noexcept { return Number; }

    static inline int wants = 0;
};

template <int Number, herring::route Path, message... Kinds> struct listening_windows {
    template <class Core> using route_type = listener<Core, Number>;
    static constexpr herring::route path = Path;
    static constexpr std::uint64_t kinds = (kind_bit(Kinds) | ...);

    listening_windows(engine_state const& state, herring::plan const&, std::span<std::byte>& staging)
        : others(state.peers.size()), first(staging.data()) {
        staging = staging.subspan(Number);
    }
    void received(token const& about, arrival const& what) noexcept {
        told += "received" + std::to_string(Number) + ":" + std::to_string(about.slot) + "," +
                std::to_string(what.bytes) + " ";
    }
    void sent(token const& about) noexcept {
        told += "sent" + std::to_string(Number) + ":" + std::to_string(about.slot) + " ";
    }
    template <class Ask> void awaited(Ask const& ask) noexcept {
        if (waits_in < 1000) ask(std::size_t{Number} - 1, waits_in, "it is asked for");
    }

    std::size_t others;
    std::byte* first;
    std::uint64_t waits_in = 1000;
};

using one = listening_windows<1, herring::route::one_hop, message::part>;
using two = listening_windows<2, herring::route::two_hop, message::push, message::result>;
using core = engine_core<mesh::endpoint, mesh::local_end, herring::trace::off, two, one>;

// Rank 0 of three nodes of one rank each, and whom it talks to.
struct rank_of_three {
    rank_of_three(mesh::network& net, int rank)
        : made(herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced>(
              std::vector<std::size_t>{16, 16}, map, 4, 4, mesh::small_tuning())),
          transport(net, rank, peers), state(1, 64), node(state, 0),
          runs({}, rank, map, made, transport, node, untraced, set(rank), 3, staging) {}
    std::span<int const> set(int rank) {
        for (int r = 0; r < 3; ++r)
            if (r != rank) peers.push_back(r);
        return peers;
    }

    herring::topology map = herring::topology::uniform(3, 1);
    herring::plan made;
    std::vector<int> peers;
    mesh::endpoint transport;
    mesh::node_state state;
    mesh::local_end node;
    herring::trace::off untraced;
    std::vector<std::byte> staging = std::vector<std::byte>(100);
    core runs;
};

} // namespace

TEST_CASE("network: a message and its end go to the route that has its kind") {
    mesh::network net(3, 1);
    rank_of_three from(net, 0), to(net, 1);
    CHECK(from.runs.two::others == 2);
    // Each takes its staging memory from the front of what is left.
    CHECK(from.runs.two::first == from.staging.data());
    CHECK(from.runs.one::first == from.staging.data() + 2);

    std::byte sent[8]{}, came[8]{};
    auto const pass = [&](message what, std::size_t bytes, std::size_t slot) {
        told.clear();
        REQUIRE(to.runs.receive(0, what, 0, came, slot));
        REQUIRE(from.runs.send(0, what, 0, std::span(sent).first(bytes), slot + 1, 0));
        CHECK(from.runs.ledger.is_pending(0));
        CHECK(from.runs.peers[0].sends == 1);
        for (int i = 0; i < 100; ++i) to.runs.poll_transport();
        for (int i = 0; i < 100; ++i) from.runs.poll_transport();
        CHECK(!from.runs.ledger.is_pending(0));
        CHECK(from.runs.peers[0].sends == 0);
        return told;
    };
    CHECK(pass(message::part, 8, 3) == "received1:3,8 sent1:4 ");
    CHECK(pass(message::push, 4, 0) == "received2:0,4 sent2:1 ");
    CHECK(pass(message::result, 0, 7) == "received2:7,0 sent2:8 ");
    CHECK(from.runs.counters().messages_sent == 3);
    CHECK(to.runs.counters().bytes_received == 12);
}

TEST_CASE("network: each route says whom it waits for; the one of the oldest execution is named") {
    mesh::network net(3, 1);
    rank_of_three r(net, 0);
    for (int i = 0; i < 2; ++i) r.runs.ledger.request({.path = herring::route::one_hop});
    r.runs.ledger.take_requests();
    for (std::uint64_t n = 0; n < 2; ++n) {
        r.runs.ledger.arrive();
        r.node.arrive(n);
        r.runs.ledger.arrive_all();
    }
    CHECK(r.runs.waiting_for().rank == -1);
    r.runs.two::waits_in = 1;
    CHECK(r.runs.waiting_for().rank == 2); // the peer at place 1
    r.runs.one::waits_in = 0;
    CHECK(r.runs.waiting_for().rank == 1);
    CHECK(r.runs.waiting_for().text == std::string("it is asked for"));
    r.runs.two::waits_in = 0; // the first in the list
    CHECK(r.runs.waiting_for().rank == 2);
    // A lost peer is a suspicion only if a route waits for it.
    CHECK(r.runs.failures.suspicion.what == herring::errc::ok);
    r.runs.two::waits_in = 1000;
    net.lose(2);
    for (int i = 0; i < 100; ++i) r.runs.poll_transport();
    CHECK(r.runs.waiting_for().rank == 1);
    CHECK(r.runs.failures.suspicion.what == herring::errc::ok);
    r.runs.two::waits_in = 1;
    CHECK(r.runs.waiting_for().rank == 1);
    CHECK(r.runs.failures.suspicion.what == herring::errc::peer_lost);
    CHECK(r.runs.failures.suspicion.peer == 2);
}

TEST_CASE("network: routes are stepped in their order, up to the one that wants work done") {
    mesh::network net(3, 1);
    rank_of_three r(net, 0);
    network_routes<core, two, one> routes(r.runs);
    told.clear();
    routes.open();
    CHECK(told == "open2 open1 ");
    CHECK(routes.cursors(herring::route::one_hop) == 1);
    CHECK(routes.cursors(herring::route::two_hop) == 2);
    CHECK(routes.cursors(herring::route::local) == 0);
    auto const step = [&](int wants, std::size_t progress) {
        listener<core, 2>::wants = wants;
        wanted_work wanted;
        told.clear();
        CHECK(routes.step(r.runs.failures, wanted) == progress);
        CHECK(wanted.any() == (wants == 2));
        return told;
    };
    CHECK(step(0, 20) == "step2 step1 ");
    CHECK(step(2, 10) == "step2 ");
    r.runs.failures.fail(
        herring::failure::make(herring::errc::mismatch, 0, 1, "reduce", "it is another operation"), false);
    CHECK(step(0, 10) == "step2 ");
}

TEST_CASE("network: slots, stages and buffers of all routes lie apart, and fill the staging memory") {
    herring::exchange_tuning tuning = mesh::small_tuning();
    tuning.message_ns = 10;
    tuning.latency_ns = 1;
    for (std::size_t const dissemination_bytes : {0u, 128u})
        for (auto const& shape : std::vector<std::vector<int>>{{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 1, 2}}) {
            CAPTURE(dissemination_bytes);
            CAPTURE(shape[0]);
            tuning.dissemination_bytes = dissemination_bytes;
            mesh::world_of<float> all(shape, {16, 4096}, tuning, 1, 0);
            for (auto const& r : all.ranks) {
                auto& runs = r->runs->core();
                two_hop_windows& large = runs;
                one_hop_windows& small = runs;
                dissemination_windows& tiny = runs;
                std::vector<std::span<std::byte>> taken;
                auto const take = [&](slot_row const& row, std::size_t count) {
                    for (std::size_t i = 0; i < count; ++i) taken.push_back(row.at(i));
                };
                CHECK(large.window == 3);
                CHECK(large.pairs.size() == r->peers.size());
                for (std::size_t p = 0; p < r->peers.size(); ++p) {
                    CHECK(large.pairs[p].slot_memory.bytes == 256);
                    take(large.pairs[p].slot_memory, large.window);
                    if (runs.is_staged()) take(large.pairs[p].stages, large.window);
                    CHECK(small.slot(p, 2).data() == small.slot(p, 2 + 8 * 5).data());
                    CHECK(small.slot(p, 2).size() == 192);
                    for (std::uint64_t n = 0; n < herring::plan::one_hop_window(); ++n)
                        taken.push_back(small.slot(p, n));
                }
                if (runs.is_staged()) take(small.stages, herring::plan::one_hop_stages());
                bool const disseminates = dissemination_bytes > 0 && shape.size() == 4;
                CHECK(tiny.buffers.bytes == (disseminates ? 4 * dissemination_bytes : 0));
                if (disseminates) take(tiny.buffers, tiny.window);

                std::sort(taken.begin(), taken.end(),
                          [](auto const& a, auto const& b) { return a.data() < b.data(); });
                std::size_t bytes = 0;
                for (std::size_t i = 0; i < taken.size(); ++i) {
                    bytes += taken[i].size();
                    std::byte const* const next =
                        i + 1 < taken.size() ? taken[i + 1].data() : r->staging.data() + r->staging.size();
                    CHECK(taken[i].data() + taken[i].size() <= next);
                }
                REQUIRE(!taken.empty());
                CHECK(taken[0].data() == r->staging.data());
                // A plan asks for as much on every rank: one that is alone on its node needs no stages.
                if (runs.is_staged() || all.made.largest_node == 1) CHECK(bytes == r->staging.size());
            }
        }
}
