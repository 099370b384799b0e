// herring: tests of ensemble/request_rules.hpp: who is asked, who waits for a credit, and whose turn it is then.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_rules.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ensemble_request_members_test {

using namespace herring::detail::ensembles;
using herring::member_set;
using herring::miss;
using state = asked_member::state;

struct bench {
    explicit bench(std::size_t count, std::size_t replicas = 1, std::size_t credits = 1)
        : pool(4, count), roster(replicas, credits, count) {
        for (peer_index p = 0; p < count * replicas; ++p) roster.peer(p).is = roster_peer::state::admitted;
    }
    slot_pool pool;
    table_roster roster;
    herring::frontend_counters totals{};
    herring::hedging_tuning hedging{};
    request_hedges hedges{pool, roster, totals, hedging};
    request_members members{pool, roster, hedges};

    slot_index begin(member_set const* among = nullptr) {
        slot_index const at = pool.take(false, 0);
        members.choose(at, among);
        members.ask(at, 5);
        return at;
    }
    std::vector<peer_index> asked(slot_index at) const {
        return {pool.asked(at), pool.asked(at) + pool[at].asked};
    }
    void answer(peer_index p, slot_index at) {
        roster.peer(p).owed.give_back(*roster.peer(p).owed.find(pool[at].id));
    }
};

TEST_CASE("request members: who is there and has a credit is asked; of the others it is known why not") {
    bench b(4);
    b.roster.peer(1).is = roster_peer::state::absent;
    b.roster.peer(2).is = roster_peer::state::draining;
    b.roster.peer(3).full = true;
    slot_index const at = b.begin();
    CHECK(b.asked(at) == std::vector<peer_index>{0});
    CHECK(b.pool[at].target == 4);
    CHECK(b.pool.member(at, 1).why == miss::absent);
    CHECK(b.pool.member(at, 2).why == miss::absent);
    CHECK(b.pool.member(at, 3).why == miss::no_credit);
    CHECK(b.pool.member(at, 3).is == state::waiting);
    CHECK(b.pool[at].waiting == 1);
    CHECK(b.roster[3].waiting == 1);
    CHECK(b.roster[0].counts.asked == 1);
    CHECK(b.roster[3].counts.asked == 0);
}

TEST_CASE("request members: among names who may be asked, and whom nothing waits for") {
    bench b(3);
    member_set const among{1, 700}; // 700 is nobody's place
    slot_index const at = b.begin(&among);
    CHECK(b.asked(at) == std::vector<peer_index>{1});
    CHECK(b.pool[at].target == 1);
    slot_index const second = b.begin(&among); // member 1 has no credit left
    CHECK(b.pool[second].waiting == 1);
    CHECK(b.pool.member(second, 0).is == state::out);
    CHECK(b.pool.member(second, 0).why == miss::not_asked);
}

TEST_CASE("request members: the oldest request that waits is asked first, each once, as credits come back") {
    bench b(1);
    slot_index const first = b.begin();
    b.pool.release(b.pool.take(false, 0)); // so that places and ages are not in one order
    slot_index const second = b.begin(), third = b.begin();
    slot_index at = no_slot;
    peer_index to = no_peer;
    CHECK(!b.members.ask_later(at, to, 6));
    b.answer(0, first);
    REQUIRE(b.members.ask_later(at, to, 7));
    CHECK(at == second);
    CHECK(to == 0);
    CHECK(b.roster.peer(0).owed.find(b.pool[second].id)->asked == 7);
    CHECK(b.pool.member(second, 0).is == state::open);
    CHECK(b.pool.member(second, 0).first_owes);
    CHECK(b.asked(second) == std::vector<peer_index>{0});
    CHECK(!b.members.ask_later(at, to, 8)); // that credit is gone
    b.pool.release(first);
    slot_index const fourth = b.begin(); // in the first one's place, and younger
    CHECK(fourth == first);
    b.answer(0, second);
    REQUIRE(b.members.ask_later(at, to, 9));
    CHECK(at == third);
    b.answer(0, third);
    REQUIRE(b.members.ask_later(at, to, 9));
    CHECK(at == fourth);
    CHECK(!b.roster.any_waiting());
    CHECK(b.roster[0].counts.asked == 4);
}

TEST_CASE(
    "request members: a credit that comes back is the oldest request's, not that of one which begins then") {
    bench b(2);
    slot_index const first = b.begin(), second = b.begin();
    b.answer(0, first);
    slot_index const third = b.begin(); // before anybody has asked for the second one
    CHECK(b.asked(third).empty());
    CHECK(b.pool.member(third, 0).why == miss::no_credit);
    CHECK(b.pool[third].waiting == 2);
    slot_index at = no_slot;
    peer_index to = no_peer;
    REQUIRE(b.members.ask_later(at, to, 6));
    CHECK(at == second);
    CHECK(!b.members.ask_later(at, to, 6));
    b.answer(0, second);
    REQUIRE(b.members.ask_later(at, to, 7));
    CHECK(at == third);
    b.answer(0, third);
    CHECK(b.asked(b.begin()) == std::vector<peer_index>{0}); // nobody waits for it any more
    b.pool.release(first);
    slot_index const expected = b.pool.take(true, 9); // costs no credit, and waits for none
    b.members.choose(expected, nullptr);
    CHECK(b.pool[expected].waiting == 0);
}

TEST_CASE(
    "request members: of two replicas the one with a credit is asked later; a member is in the list once") {
    bench b(2, 2);
    slot_index const first = b.begin(), second = b.begin(), third = b.begin();
    CHECK(b.asked(first) == std::vector<peer_index>{0, 2});
    CHECK(b.asked(second) == std::vector<peer_index>{1, 3});
    CHECK(b.pool[third].waiting == 2);
    b.answer(3, second);
    slot_index at = no_slot;
    peer_index to = no_peer;
    REQUIRE(b.members.ask_later(at, to, 6));
    CHECK(at == third);
    CHECK(to == 3);
    // It could not be sent to that one: the other is asked, in its place of the list.
    b.answer(3, third);
    b.roster.peer(3).full = true;
    b.pool.member(third, 1) = {};
    b.pool.member(third, 1).is = state::waiting;
    ++b.pool[third].waiting;
    b.roster.waits(1);
    b.answer(2, first);
    REQUIRE(b.members.ask_later(at, to, 7));
    CHECK(to == 2);
    CHECK(b.asked(third) == std::vector<peer_index>{2});
    b.answer(0, first);
    REQUIRE(b.members.ask_later(at, to, 8));
    CHECK(b.asked(third) == std::vector<peer_index>{2, 0}); // no more than there are members
}

TEST_CASE("request members: dismissed, nobody owes anything") {
    bench b(2);
    slot_index const at = b.pool.take(false, 0);
    b.members.choose(at, nullptr);
    b.members.dismiss(at, miss::expired);
    CHECK(b.pool[at].open == 0);
    CHECK(b.pool[at].asked == 0);
    CHECK(b.pool.member(at, 1).why == miss::expired);
    CHECK(b.pool.member(at, 1).first == no_peer);
    CHECK(b.roster.peer(0).owed.used() == 0);
}

} // namespace ensemble_request_members_test
