// herring: tests of ensemble/request_rules.hpp: when a request is decided, and that each decision is told once, in order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_rules.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <vector>

namespace ensemble_request_decisions_test {

using namespace herring::detail::ensembles;
using herring::miss;
using herring::outcome;
using state = asked_member::state;

struct bench {
    slot_pool pool{4, 3};
    table_roster roster{1, 4, 3};
    herring::frontend_counters totals{};
    herring::quorum_tuning quorum{};
    request_decisions decisions{pool, roster, totals, quorum};

    // All three members are asked, or wait for a credit.
    slot_index begin(std::size_t k, std::size_t waiting = 0) {
        slot_index const at = pool.take(false, 0);
        request_slot& s = pool[at];
        s.deadline = 1'000'000;
        s.k = k;
        s.members = s.target = 3;
        for (std::size_t m = 0; m < 3; ++m) {
            pool.member(at, m) = {};
            bool const waits = m >= 3 - waiting;
            pool.member(at, m).is = waits ? state::waiting : state::open;
            pool.member(at, m).why = waits ? miss::no_credit : miss::none;
            ++(waits ? s.waiting : s.open);
            if (waits) roster.waits(m);
        }
        decisions.reschedule(at);
        return at;
    }
    void count(slot_index at, std::uint32_t m, std::int64_t now) {
        decisions.count(at, pool.member(at, m), {.member = m, .peer = m}, now);
    }
    void gone(slot_index at, std::size_t m, std::int64_t now) {
        decisions.gone(at, pool.member(at, m), miss::declined, now);
    }
    std::vector<slot_index> told() {
        std::vector<slot_index> all;
        for (slot_index at = 0; decisions.next(at);) all.push_back(at);
        return all;
    }
};

TEST_CASE("request decisions: told once, in the order of decisions, less those that need not be told") {
    bench b;
    slot_index const a = b.begin(1), c = b.begin(1), d = b.begin(1), e = b.begin(1);
    for (slot_index const at : {d, a, e, c})
        b.decisions.decide(at, outcome::cancelled, 1, request_decisions::ending::other);
    CHECK(b.decisions.due().empty());
    b.decisions.unlink(e); // in the middle
    b.decisions.unlink(e); // once more is nothing
    CHECK(b.told() == std::vector<slot_index>{d, a, c});
    CHECK(b.told().empty());
    b.pool.release(d);
    slot_index const again = b.begin(1);
    CHECK(again == d);
    b.decisions.decide(again, outcome::cancelled, 2, request_decisions::ending::other);
    b.decisions.unlink(again); // the only one
    CHECK(b.told().empty());
    CHECK(b.totals.ended[static_cast<std::size_t>(outcome::cancelled)] == 5);
}

TEST_CASE("request decisions: failed with the member that puts k out of reach, not before") {
    bench b;
    slot_index const at = b.begin(2);
    b.gone(at, 0, 5);
    CHECK(b.told().empty());
    b.gone(at, 2, 6);
    CHECK(b.told() == std::vector<slot_index>{at});
    CHECK(b.pool[at].how == outcome::failed);
    CHECK(b.pool[at].decided == 6);
    CHECK(b.pool.member(at, 1).why == miss::late); // it was there, and what it sends now is late
    CHECK(b.roster[0].counts.missed == 1);
}

TEST_CASE("request decisions: the k-th row begins the grace, which the deadline cuts short") {
    bench b;
    slot_index const at = b.begin(2);
    b.count(at, 2, 100'000);
    CHECK(b.pool[at].ends() == 1'000'000);
    b.count(at, 0, 400'000);
    CHECK(b.pool[at].ends() == 400'000 + b.quorum.grace_ns(400'000));
    CHECK(b.decisions.due().time() == b.pool[at].ends());
    slot_index const late = b.begin(1);
    b.count(late, 0, 999'999);
    CHECK(b.pool[late].ends() == 1'000'000);
    b.count(at, 1, 400'001);
    CHECK(b.pool[at].how == outcome::full);
    CHECK(b.pool[at].contributors == herring::member_set{0, 1, 2});
    CHECK(b.pool.rows(at)[0].member == 0); // in roster order, whoever came first
    CHECK(b.pool.rows(at)[2].member == 2);
}

TEST_CASE("request decisions: members that wait for a credit may still answer, until k have or they cannot") {
    bench b;
    slot_index const at = b.begin(2, 2);
    b.gone(at, 0, 5);
    CHECK(b.told().empty()); // two may still be asked
    b.decisions.not_asked(at, 1, miss::lost, 6);
    CHECK(b.told() == std::vector<slot_index>{at});
    CHECK(b.pool[at].how == outcome::failed);
    CHECK(b.pool.member(at, 1).why == miss::lost);
    CHECK(b.pool.member(at, 2).why == miss::no_credit);
    CHECK(!b.roster.any_waiting());
    CHECK(b.roster[2].counts.missed == 0); // it was not asked
    CHECK(b.roster[2].counts.missing_for(miss::no_credit) == 1);

    slot_index const enough = b.begin(2, 1);
    b.count(enough, 0, 7);
    CHECK(b.roster.any_waiting());
    b.count(enough, 1, 8);
    CHECK(!b.roster.any_waiting());
    CHECK(b.told() == std::vector<slot_index>{enough});
    CHECK(b.pool[enough].how == outcome::partial);

    slot_index const open = b.begin(1, 1);
    b.count(open, 0, 9);
    CHECK(b.told().empty()); // the second has its grace
    CHECK(b.pool.member(open, 2).is == state::out);
    CHECK(!b.roster.any_waiting());
}

TEST_CASE("request decisions: what could not be sent waits, unless k have come") {
    bench b;
    slot_index const at = b.begin(1);
    b.roster[1].counts.asked = b.roster[2].counts.asked = 1;
    b.pool.member(at, 1).slow = true;
    b.pool[at].open_slow = 1;
    b.pool.member(at, 1).hedge_at = b.pool[at].hedge_at = 50;
    b.decisions.reschedule(at);
    b.decisions.unsent(at, 1, 5);
    CHECK(b.pool.member(at, 1).is == state::waiting);
    CHECK(b.pool.member(at, 1).slow); // its standing when the request began
    CHECK(b.pool[at].open_slow == 0);
    CHECK(b.roster[1].counts.asked == 0);
    CHECK(b.decisions.due().time() == 1'000'000); // nothing is hedged that was not sent
    b.count(at, 0, 6);
    b.decisions.unsent(at, 2, 7);
    CHECK(b.pool.member(at, 2).is == state::gone);
    CHECK(b.roster[2].counts.asked == 1);
    CHECK(b.told() == std::vector<slot_index>{at});
    CHECK(b.pool[at].how == outcome::partial);
    CHECK(!b.roster.any_waiting());
}

} // namespace ensemble_request_decisions_test
