// herring: tests of ensemble/request_rules.hpp: which second requests are sent, and that those that are not are not owed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_rules.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace ensemble_request_hedges_test {

using namespace herring::detail::ensembles;
using state = asked_member::state;

struct bench {
    explicit bench(std::size_t replicas = 2, herring::hedging_tuning const& tuning = {.percent = 100})
        : roster(replicas, 4, 1), hedging(tuning) {
        for (peer_index p = 0; p < replicas; ++p) {
            roster.peer(p).is = roster_peer::state::admitted;
            roster.peer(p).incarnation = 100 + p;
        }
    }
    slot_pool pool{4, 1};
    table_roster roster;
    herring::frontend_counters totals{};
    herring::hedging_tuning hedging;
    request_hedges hedges{pool, roster, totals, hedging};

    // A request that was sent to peer 0, which allows one hedge more.
    slot_index begin() {
        slot_index const at = pool.take(false, 0);
        pool[at].members = 1;
        pool.member(at, 0) = {};
        pool.member(at, 0).is = state::open;
        pool.member(at, 0).first = 0;
        pool.member(at, 0).first_owes = true;
        roster.peer(0).owed.take(pool[at].id, 1);
        hedges.sent(1);
        return at;
    }
    std::vector<std::pair<slot_index, peer_index>> due() {
        std::vector<std::pair<slot_index, peer_index>> all;
        slot_index at = 0;
        for (peer_index to = 0; hedges.next(at, to);) all.push_back({at, to});
        return all;
    }
};
using sent = std::vector<std::pair<slot_index, peer_index>>;

TEST_CASE("request hedges: in order, each to another replica than the first") {
    bench b;
    slot_index const first = b.begin(), second = b.begin();
    b.hedges.sent(10); // the budget has more
    CHECK(b.hedges.add(second, 0, 5));
    CHECK(b.hedges.add(first, 0, 6));
    CHECK(!b.hedges.add(first, 0, 7)); // once
    CHECK(b.roster.peer(1).owed.used() == 2);
    CHECK(b.roster.peer(1).owed.find(b.pool[first].id)->asked == 6);
    CHECK(b.due() == sent{{second, 1}, {first, 1}});
    CHECK(b.due().empty());
    CHECK(b.roster[0].counts.hedged == 2);
    CHECK(b.totals.hedges == 2);
}

TEST_CASE("request hedges: none without budget, without a replica that has a credit and room, or for what is "
          "expected") {
    bench b;
    slot_index const at = b.begin();
    b.roster.peer(1).full = true;
    CHECK(!b.hedges.add(at, 0, 5));
    b.roster.peer(1).full = false;
    b.roster.peer(1).is = roster_peer::state::draining;
    CHECK(!b.hedges.add(at, 0, 5));
    b.roster.peer(1).is = roster_peer::state::admitted;
    b.pool[at].expected = true;
    CHECK(!b.hedges.add(at, 0, 5));
    b.pool[at].expected = false;
    CHECK(b.totals.hedges_withheld == 0);
    CHECK(b.hedges.add(at, 0, 5));
    slot_index const other = b.pool.take(false, 0); // sent nothing that would allow a hedge
    b.pool.member(other, 0) = {};
    CHECK(!b.hedges.add(other, 0, 5));
    CHECK(b.totals.hedges_withheld == 1);
    bench alone(1);
    CHECK(!alone.hedges.may());
    CHECK(!alone.hedges.add(alone.begin(), 0, 5));
    bench never(2, {.percent = 0});
    CHECK(!never.hedges.add(never.begin(), 0, 5));
}

TEST_CASE("request hedges: what was answered or decided before it was sent is not sent, not owed, and gives "
          "the budget back") {
    for (int const what : {0, 1, 2}) {
        CAPTURE(what);
        bench b(2, {.percent = 100, .burst = 1});
        slot_index const at = b.begin();
        REQUIRE(b.hedges.add(at, 0, 5));
        asked_member& asked = b.pool.member(at, 0);
        if (what == 0) asked.is = state::counted; // by the first
        if (what == 1) b.pool[at].is = request_slot::state::decided;
        if (what == 2) b.pool.release(at);
        CHECK(b.due().empty());
        CHECK(b.roster.peer(1).owed.used() == 0);
        if (what != 2) CHECK(!asked.second_owes);
        CHECK(b.roster[0].counts.hedged == 0);
        CHECK(b.totals.hedges == 0);
        slot_index const next = b.pool.take(false, 0);
        b.pool[next].members = 1;
        b.pool.member(next, 0) = {};
        b.pool.member(next, 0).is = state::open;
        CHECK(b.hedges.add(next, 0, 6)); // with the budget of the other
    }
}

TEST_CASE("request hedges: none to a process that has been replaced since") {
    bench b;
    slot_index const at = b.begin();
    REQUIRE(b.hedges.add(at, 0, 5));
    b.roster.peer(1).owed.clear(); // as when it is lost
    b.roster.peer(1).incarnation = 999;
    b.roster.peer(1).owed.take(b.pool[at].id, 6); // the new one owes a request of this id for another reason
    CHECK(b.due().empty());
}

} // namespace ensemble_request_hedges_test
