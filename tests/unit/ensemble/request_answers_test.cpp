// herring: tests of ensemble/request_answers.hpp: what an answer belongs to, and that a credit comes back once.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_answers.hpp"

#include "doctest/doctest.h"

#include <cstdint>

namespace ensemble_request_answers_test {

using namespace herring::detail::ensembles;

struct bench {
    slot_pool pool{4, 2};
    table_roster roster{2, 4, 2}; // two members of two replicas: peers 0, 1 and 2, 3
    herring::frontend_counters totals{};
    request_answers answers{pool, roster, totals};

    bench() {
        for (peer_index p = 0; p < 4; ++p) {
            roster.peer(p).is = roster_peer::state::admitted;
            roster.peer(p).incarnation = 100 + p;
        }
    }
    // A request that peers 0 and 2 owe.
    slot_index begin() {
        slot_index const at = pool.take(false, 0);
        pool[at].members = 2;
        for (std::size_t m = 0; m < 2; ++m) {
            asked_member& each = pool.member(at, m);
            each = {};
            each.is = asked_member::state::open;
            each.first = static_cast<peer_index>(2 * m);
            each.first_owes = true;
            roster.peer(each.first).owed.take(pool[at].id, 5);
        }
        return at;
    }
    slot_index expect(std::uint64_t id) {
        slot_index const at = pool.take(true, id);
        pool[at].members = 2;
        pool[at].entered = 3;
        for (std::size_t m = 0; m < 2; ++m) {
            pool.member(at, m) = {};
            pool.member(at, m).is = asked_member::state::open;
        }
        return at;
    }
};

TEST_CASE("request answers: of who owes it, once; then it is a duplicate") {
    bench b;
    slot_index const at = b.begin();
    auto const a = b.answers.take(0, 100, b.pool[at].id, false);
    CHECK(a.is == arrival::counted);
    CHECK(a.slot == at);
    CHECK(a.asked == &b.pool.member(at, 0));
    CHECK(a.ask.asked == 5);
    CHECK(a.last());
    CHECK(b.roster.peer(0).owed.used() == 0);
    CHECK(b.answers.take(0, 100, b.pool[at].id, false).is == arrival::duplicate);
    CHECK(b.roster[0].counts.duplicate == 1);
    CHECK(b.roster.peer(2).owed.used() == 1); // the other's is its own
}

TEST_CASE("request answers: nothing of another incarnation, of nobody, or of who was not asked") {
    bench b;
    slot_index const at = b.begin();
    std::uint64_t const id = b.pool[at].id;
    CHECK(b.answers.take(0, 99, id, false).is == arrival::stale);
    CHECK(b.answers.take(0, 101, id, true).is == arrival::stale); // the other replica's
    CHECK(b.answers.take(1, 101, id, false).is == arrival::stale);
    CHECK(b.answers.take(4, 100, id, false).is == arrival::stale); // beyond the roster
    CHECK(b.answers.take(~peer_index{0}, 100, id, false).is == arrival::stale);
    b.roster.peer(0).is = roster_peer::state::absent;
    CHECK(b.answers.take(0, 100, id, false).is == arrival::stale);
    CHECK(b.roster.peer(0).owed.used() == 1);
    CHECK(b.pool.member(at, 0).first_owes);
    CHECK(b.roster[0].counts.stale == 4);
}

TEST_CASE("request answers: ids that are no request's") {
    bench b;
    slot_index const at = b.begin();
    std::uint64_t const id = b.pool[at].id;
    for (std::uint64_t const other :
         {std::uint64_t{0}, std::uint64_t{1}, slot_pool::sent_bit, ~std::uint64_t{0}, id + 1, id ^ 16})
        CHECK(b.answers.take(0, 100, other, false).is == arrival::stale);
    CHECK(b.roster.peer(0).owed.used() == 1);
    CHECK(b.answers.take(0, 100, id, false).is == arrival::counted);
}

TEST_CASE("request answers: of two replicas that owe it the last one ends it") {
    bench b;
    slot_index const at = b.begin();
    asked_member& asked = b.pool.member(at, 0);
    asked.second = 1;
    asked.second_owes = true;
    b.roster.peer(1).owed.take(b.pool[at].id, 9);
    auto const second = b.answers.take(1, 101, b.pool[at].id, false);
    CHECK(second.is == arrival::counted);
    CHECK(second.ask.asked == 9);
    CHECK(!second.last()); // the first may still answer
    CHECK(b.answers.take(0, 100, b.pool[at].id, false).last());
}

TEST_CASE("request answers: an answer after the request gives the credit back") {
    bench b;
    slot_index const at = b.begin();
    std::uint64_t const id = b.pool[at].id;
    b.pool.release(at);
    slot_index const next = b.begin(); // in the same slot
    CHECK(next == at);
    auto const a = b.answers.take(0, 100, id, false);
    CHECK(a.is == arrival::counted); // as far as the peer owed it
    CHECK(a.slot == no_slot);
    CHECK(a.asked == nullptr);
    CHECK(!a.last());
    CHECK(b.pool.member(next, 0).first_owes);
    CHECK(b.roster.peer(0).owed.used() == 1);
}

TEST_CASE("request answers: an expected request hears one replica of a member") {
    bench b;
    slot_index const at = b.expect(77);
    auto const a = b.answers.take(1, 101, 77, true);
    CHECK(a.is == arrival::counted);
    CHECK(a.ask.asked == 3); // since its entry
    CHECK(b.answers.take(1, 101, 77, true).is == arrival::duplicate);
    CHECK(b.answers.take(0, 100, 77, true).is == arrival::late);
    CHECK(b.roster[0].counts.late == 1);
    CHECK(b.totals.late_rows == 1);
    b.pool.member(at, 1).is = asked_member::state::out; // not among those who are expected
    CHECK(b.answers.take(2, 102, 77, true).is == arrival::stale);
}

TEST_CASE("request answers: an id that nobody expects yet is early where that is kept, else stale") {
    bench b;
    CHECK(b.answers.take(0, 100, 500, true).is == arrival::early);
    CHECK(b.answers.take(0, 100, 500, false).is == arrival::stale);
    CHECK(b.roster[0].counts.stale == 1);
}

TEST_CASE("request answers: a request does not know a member that came into the roster after it") {
    bench b;
    slot_index const at = b.begin();
    b.roster.add();
    b.pool.grow(3);
    b.roster.peer(4).is = roster_peer::state::admitted;
    b.roster.peer(4).incarnation = 104;
    auto const a = b.answers.take(4, 104, b.pool[at].id, false);
    CHECK(a.is == arrival::stale);
    CHECK(a.asked == nullptr);
}

TEST_CASE("request answers: whatever a peer answers, there may be room in its lane again") {
    bench b;
    for (peer_index const p : {0u, 1u}) b.roster.peer(p).full = true;
    (void)b.answers.take(0, 99, 1, false); // an earlier incarnation's
    CHECK(b.roster.peer(0).full);
    (void)b.answers.take(0, 100, 1, false);
    CHECK(!b.roster.peer(0).full);
    CHECK(b.roster.peer(1).full);
}

} // namespace ensemble_request_answers_test
