// herring: tests of ensemble/request_roster.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_roster.hpp"

#include "doctest/doctest.h"

namespace ensemble_table_roster_test {

using namespace herring::detail::ensembles;

TEST_CASE(
    "table_roster: of a member's replicas, one that is admitted, with credit, and the fewest unanswered") {
    table_roster r(3, 2);
    r.add();
    r.add();
    CHECK(r.size() == 2);
    CHECK(r.has(5));
    CHECK_FALSE(r.has(6));
    CHECK(r.member_of(5) == 1);
    CHECK_FALSE(r.choose(1, no_peer).admitted);
    CHECK_FALSE(r.reachable(1));
    for (peer_index p : {3u, 4u, 5u}) r.peer(p).is = roster_peer::state::admitted;
    CHECK(r.choose(1, no_peer).peer == 3);
    CHECK(r.choose(1, 3).peer == 4);
    r.peer(3).owed.take(7, 0);
    CHECK(r.choose(1, no_peer).peer == 4);
    r.peer(4).is = roster_peer::state::draining;
    CHECK(r.choose(1, no_peer).peer == 5);
    for (peer_index p : {3u, 5u})
        for (std::uint64_t id = 10; r.peer(p).owed.left(); ++id) r.peer(p).owed.take(id, 0);
    CHECK(r.choose(1, no_peer).peer == no_peer);
    CHECK(r.choose(1, no_peer).admitted);
    CHECK(r.admitted() == 1);
    r.peer(3).is = r.peer(5).is = roster_peer::state::absent;
    CHECK(r.reachable(1)); // by the one that leaves
    CHECK(r.admitted() == 0);
}

TEST_CASE("table_roster: each change of a probation is reported once, as it is then") {
    constexpr herring::quorum_tuning tuning{.probation_after = 1, .probation_left_after = 1};
    table_roster r(1, 1);
    for (int i = 0; i < 3; ++i) r.add();
    std::size_t m = 9;
    bool on = false;
    CHECK_FALSE(r.next_probation(m, on));
    r.judge(2, false, tuning);
    r.judge(0, false, tuning);
    r.judge(0, true, tuning);
    r.judge(1, true, tuning); // nothing changes
    REQUIRE(r.next_probation(m, on));
    CHECK(m == 0);
    CHECK_FALSE(on);
    REQUIRE(r.next_probation(m, on));
    CHECK(m == 2);
    CHECK(on);
    CHECK_FALSE(r.next_probation(m, on));
    r.forget_verdicts(2);
    r.forget_verdicts(1);
    REQUIRE(r.next_probation(m, on));
    CHECK(m == 2);
    CHECK_FALSE(on);
    CHECK_FALSE(r.next_probation(m, on));
}

} // namespace ensemble_table_roster_test
