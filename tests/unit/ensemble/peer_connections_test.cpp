// herring: tests of ensemble/acceptor_sockets.hpp and peer_connection.hpp: keys that are used once, and who makes room first.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/acceptor_sockets.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace ensemble_guest_list_test {

namespace detail = herring::detail;
namespace ensembles = detail::ensembles;
using ensembles::peer_connection;
using ensembles::peer_connections;

struct door {
    detail::rendezvous::event_thread thread{};
    peer_connections guests{thread};

    door() { thread.open("test"); }
    peer_connection& add() {
        int ends[2] = {-1, -1};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        detail::descriptor const other(ends[1]);
        auto const now = herring::clock::now();
        return guests.add(ensembles::control_link(detail::descriptor(ends[0]), true, true), now, now);
    }
};

TEST_CASE("peer_connections: the key of a peer_connection that is gone finds nobody, also when its place is "
          "another's") {
    door at;
    peer_connection& first = at.add();
    std::uint64_t const key = first.key;
    CHECK(key >= std::uint64_t{1} << 20);
    CHECK(at.guests.find(key) == &first);
    CHECK(at.guests.find(0) == nullptr);
    at.guests.close(first);
    CHECK(at.guests.find(key) == nullptr);
    CHECK(!first.link.open()); // can be looked at until it is reaped
    at.guests.reap();
    peer_connection& second = at.add();
    CHECK(second.key != key);
    CHECK(at.guests.find(key) == nullptr);
    CHECK(at.guests.find(second.key) == &second);
}

TEST_CASE(
    "peer_connections: who has said nothing makes room first, of these the oldest, and never a member") {
    door at;
    CHECK(at.guests.least_likely() == nullptr);
    peer_connection &member = at.add(), &proving = at.add(), &challenged = at.add(), &told = at.add(),
                    &old = at.add(), &young = at.add();
    member.at = peer_connection::stage::up;
    proving.at = peer_connection::stage::lane_proving;
    challenged.at = peer_connection::stage::challenged;
    told.at = peer_connection::stage::ending;
    CHECK(at.guests.unproven() == 5);
    for (peer_connection* const due : {&old, &young, &told, &challenged, &proving}) {
        REQUIRE(at.guests.least_likely() == due);
        at.guests.close(*due);
    }
    CHECK(at.guests.least_likely() == nullptr);
    CHECK(at.guests.unproven() == 0);
}

} // namespace ensemble_guest_list_test
