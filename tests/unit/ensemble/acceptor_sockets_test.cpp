// herring: tests of ensemble/acceptor_sockets.hpp: keys that are used once, who makes room, who has proved itself.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/acceptor_sockets.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace ensemble_peer_connections_test {

namespace detail = herring::detail;
namespace ensembles = detail::ensembles;
using ensembles::peer_connection;
using ensembles::peer_connections;

struct opened {
    detail::event_thread thread{};
    peer_connections list{thread};

    opened() { thread.open("test"); }
    peer_connection& add() {
        int ends[2] = {-1, -1};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        detail::descriptor const other(ends[1]);
        auto const now = herring::clock::now();
        return list.add(ensembles::control_link(detail::descriptor(ends[0]), true, true), now, now);
    }
};

TEST_CASE("peer_connections: the key of a peer_connection that is gone finds nobody, also when its place is "
          "another's") {
    opened at;
    peer_connection& first = at.add();
    std::uint64_t const key = first.key;
    CHECK(key >= std::uint64_t{1} << 20);
    CHECK(at.list.find(key) == &first);
    CHECK(at.list.find(0) == nullptr);
    at.list.close(first);
    CHECK(at.list.find(key) == nullptr);
    CHECK(!first.link.open()); // can be looked at until it is reaped
    at.list.reap();
    peer_connection& second = at.add();
    CHECK(second.key != key);
    CHECK(at.list.find(key) == nullptr);
    CHECK(at.list.find(second.key) == &second);
}

TEST_CASE(
    "peer_connections: who has said nothing makes room first, of these the oldest, and never a member") {
    opened at;
    CHECK(at.list.least_likely() == nullptr);
    peer_connection &member = at.add(), &proving = at.add(), &challenged = at.add(), &told = at.add(),
                    &old = at.add(), &young = at.add();
    member.at = peer_connection::stage::up;
    proving.at = peer_connection::stage::lane_proving;
    challenged.at = peer_connection::stage::challenged;
    told.at = peer_connection::stage::ending;
    CHECK(at.list.unproven() == 5);
    for (peer_connection* const due : {&old, &young, &told, &challenged, &proving}) {
        REQUIRE(at.list.least_likely() == due);
        at.list.close(*due);
    }
    CHECK(at.list.least_likely() == nullptr);
    CHECK(at.list.unproven() == 0);
}

} // namespace ensemble_peer_connections_test

namespace ensemble_peer_connection_test {

using herring::detail::ensembles::peer_connection;
using stage = peer_connection::stage;

TEST_CASE("peer_connection: the further it has come, the likelier it is a member; who has been told to go is "
          "before "
          "who was challenged") {
    int before = -1;
    for (stage const at : {stage::unknown, stage::ending, stage::challenged, stage::lane_proving}) {
        peer_connection g;
        g.at = at;
        CHECK(g.likelihood() > before);
        before = g.likelihood();
    }
}

TEST_CASE("peer_connection: proven is who was admitted, and is not on the way out") {
    for (stage const at : {stage::unknown, stage::challenged, stage::lane_proving, stage::admitted, stage::up,
                           stage::ending}) {
        peer_connection g;
        g.at = at;
        CHECK(g.proven() == (at == stage::admitted || at == stage::up));
    }
}

TEST_CASE("peer_connection: a new one is a stranger that nothing was promised") {
    peer_connection const g;
    CHECK(!g.proven());
    CHECK(g.likelihood() == 0);
    CHECK(g.until == herring::time_point::max());
    CHECK(g.beat_at == herring::time_point::max());
}

} // namespace ensemble_peer_connection_test
