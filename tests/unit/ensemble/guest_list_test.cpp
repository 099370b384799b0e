// herring: tests of ensemble/guest_list.hpp and guest.hpp: keys that are used once, and who makes room first.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/guest_list.hpp"

#include "doctest/doctest.h"
#include "herring/ensemble/guest.hpp"

#include <cstdint>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace ensemble_guest_list_test {

namespace detail = herring::detail;
namespace ensembles = detail::ensembles;
using ensembles::guest;
using ensembles::guest_list;

struct door {
    detail::rendezvous::event_thread thread{};
    guest_list guests{thread};

    door() { thread.open("test"); }
    guest& add() {
        int ends[2] = {-1, -1};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        detail::descriptor const other(ends[1]);
        auto const now = herring::clock::now();
        return guests.add(ensembles::control_link(detail::descriptor(ends[0]), true, true), now, now);
    }
};

TEST_CASE("guest_list: the key of a guest that is gone finds nobody, also when its place is another's") {
    door at;
    guest& first = at.add();
    std::uint64_t const key = first.key;
    CHECK(key >= std::uint64_t{1} << 20);
    CHECK(at.guests.find(key) == &first);
    CHECK(at.guests.find(0) == nullptr);
    at.guests.close(first);
    CHECK(at.guests.find(key) == nullptr);
    CHECK(!first.link.open()); // can be looked at until it is reaped
    at.guests.reap();
    guest& second = at.add();
    CHECK(second.key != key);
    CHECK(at.guests.find(key) == nullptr);
    CHECK(at.guests.find(second.key) == &second);
}

TEST_CASE("guest_list: who has said nothing makes room first, of these the oldest, and never a member") {
    door at;
    CHECK(at.guests.least_likely() == nullptr);
    guest &member = at.add(), &proving = at.add(), &challenged = at.add(), &told = at.add(), &old = at.add(),
          &young = at.add();
    member.at = guest::stage::up;
    proving.at = guest::stage::lane_proving;
    challenged.at = guest::stage::challenged;
    told.at = guest::stage::ending;
    CHECK(at.guests.unproven() == 5);
    for (guest* const due : {&old, &young, &told, &challenged, &proving}) {
        REQUIRE(at.guests.least_likely() == due);
        at.guests.close(*due);
    }
    CHECK(at.guests.least_likely() == nullptr);
    CHECK(at.guests.unproven() == 0);
}

} // namespace ensemble_guest_list_test
