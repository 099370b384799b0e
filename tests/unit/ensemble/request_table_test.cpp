// herring: tests of ensemble/request_table.hpp: its rules one by one. request_table_scripts_test.cpp has all of them at once.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_table.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ensemble_request_table_test {

using namespace herring::detail::ensembles;
using herring::decline;
using herring::member_set;
using herring::miss;
using herring::outcome;
using arrival = request_table::arrival;

constexpr std::int64_t us = 1000, ms = 1'000'000;

// A table whose peers are all admitted at 0, with incarnation 100 + peer.
struct bench {
    explicit bench(table_options const& options) : table(options) {
        for (peer_index p = 0; p < options.members * options.replicas; ++p) table.admitted(p, 100 + p, 0);
    }
    request_table table;

    request_table::begun ask(std::int64_t now, std::int64_t timeout = 10 * ms, std::size_t k = 0,
                             member_set const* among = nullptr) {
        return table.begin({.entered = now, .deadline = now + timeout, .k = k, .among = among}, now);
    }
    request_table::begun expect(std::uint64_t id, std::int64_t now) {
        return table.begin({.entered = now, .deadline = now + 10 * ms, .expected_id = id, .expect = true},
                           now);
    }
    arrival row(peer_index peer, std::uint64_t id, std::int64_t now, row_check check = row_check::good) {
        return table.row(peer, 100 + peer, id, 7 + peer, check, now);
    }
    std::vector<place_index> returned() {
        std::vector<place_index> all;
        for (early_row row; table.next_returned(row);) all.push_back(row.place);
        return all;
    }
    void decline_it(peer_index peer, std::uint64_t id, std::int64_t now) {
        table.declined(peer, 100 + peer, id, decline::overloaded, now);
    }
    // The decided requests that have not been asked for.
    std::vector<slot_index> decided() {
        std::vector<slot_index> all;
        for (slot_index s = 0; table.next_decided(s);) all.push_back(s);
        return all;
    }
    void free(slot_index at) {
        table.release(at, [](peer_index, place_index) {});
    }
    // Members that are asked only now, in order.
    std::vector<std::pair<slot_index, peer_index>> later() {
        std::vector<std::pair<slot_index, peer_index>> all;
        slot_index at = 0;
        for (peer_index to = 0; table.next_ask(at, to);) all.push_back({at, to});
        return all;
    }
    // Requests that `peer` does not answer and the others do, until it has no credit left. Returns their ids.
    std::vector<std::uint64_t> without_credit(peer_index peer, std::size_t members, int credits) {
        std::vector<std::uint64_t> owed;
        for (int i = 0; i < credits; ++i) {
            auto const b = ask(0, 10 * ms, 1);
            for (peer_index p = 0; p < members; ++p)
                if (p != peer) CHECK(row(p, b.id, us) == arrival::counted);
            CHECK(table.cancel(b.slot, b.id));
            CHECK(decided() == std::vector<slot_index>{b.slot});
            free(b.slot);
            owed.push_back(b.id);
        }
        return owed;
    }
    // A request that all but `but` answer at `now` + 1 ms, until it is decided.
    void round(std::int64_t now, std::size_t members, peer_index but) {
        auto const b = ask(now);
        for (peer_index p = 0; p < members; ++p)
            if (p != but) CHECK(row(p, b.id, now + ms) == arrival::counted);
        table.advance(now + 9 * ms);
        CHECK(decided() == std::vector<slot_index>{b.slot});
        CHECK(row(but, b.id, now + 9 * ms) == arrival::late);
        free(b.slot);
    }
};
std::vector<peer_index> list(std::span<peer_index const> peers) { return {peers.begin(), peers.end()}; }

TEST_CASE("request_table: all of the roster is full") {
    bench b({.members = 3, .k = 2});
    auto const r = b.ask(0);
    CHECK(r.refused == outcome::full);
    CHECK(list(b.table.asked(r.slot)) == std::vector<peer_index>{0, 1, 2});
    CHECK(b.table.next_event() == 10 * ms);
    CHECK(b.row(2, r.id, 1 * ms) == arrival::counted);
    CHECK(b.row(0, r.id, 2 * ms) == arrival::counted);
    CHECK(b.decided().empty());
    CHECK(b.row(1, r.id, 2 * ms + us) == arrival::counted);
    REQUIRE(b.decided() == std::vector<slot_index>{r.slot});
    CHECK(b.table.result(r.slot) == outcome::full);
    CHECK(b.table.contributors(r.slot) == member_set{0, 1, 2});
    auto const rows = b.table.contributions(r.slot);
    REQUIRE(rows.size() == 3);
    for (std::uint32_t m = 0; m < 3; ++m) { // roster order
        CHECK(rows[m].member == m);
        CHECK(rows[m].peer == m);
        CHECK(rows[m].place == 7 + m);
        CHECK(rows[m].incarnation == 100 + m);
        CHECK(b.table.why(r.slot, m) == miss::none);
    }
    CHECK(b.table.latency_ns(r.slot, 2) == 1 * ms);
    CHECK(b.table.decided_ns(r.slot) == 2 * ms + us);
    CHECK(b.table.next_event() == never_ns);
    std::vector<std::pair<peer_index, place_index>> given;
    b.table.release(r.slot, [&](peer_index p, place_index at) { given.emplace_back(p, at); });
    CHECK(given == std::vector<std::pair<peer_index, place_index>>{{0, 7}, {1, 8}, {2, 9}});
    CHECK(b.table.in_flight() == 0);
}

TEST_CASE("request_table: after the k-th row, 15 % of its time is waited, not a nanosecond more") {
    for (std::int64_t const at : {1'149'999, 1'150'000}) {
        bench b({.members = 3, .k = 2});
        auto const r = b.ask(0);
        b.row(0, r.id, us);
        CHECK(b.table.next_event() == 10 * ms);
        b.row(1, r.id, 1 * ms);
        CHECK(b.table.next_event() == 1'150'000);
        bool const in_time = at < 1'150'000;
        CHECK(b.row(2, r.id, at) == (in_time ? arrival::counted : arrival::late));
        REQUIRE(b.decided().size() == 1);
        CHECK(b.table.result(r.slot) == (in_time ? outcome::full : outcome::partial));
        CHECK(b.table.why(r.slot, 2) == (in_time ? miss::none : miss::late));
        CHECK(b.table.latency_ns(r.slot, 2) == at);
    }
}

TEST_CASE(
    "request_table: t_k counts from the entry, the grace is a wake-up at least, and the deadline bounds it") {
    bench b({.members = 3, .k = 2});
    auto const late_entry = b.table.begin({.entered = 0, .deadline = 10 * ms}, 2 * ms);
    b.row(0, late_entry.id, 4 * ms);
    b.row(1, late_entry.id, 4 * ms);
    CHECK(b.table.next_event() == 4 * ms + 600 * us);
    b.table.advance(5 * ms);
    auto const quick = b.ask(20 * ms);
    b.row(0, quick.id, 20 * ms + 10 * us);
    b.row(1, quick.id, 20 * ms + 10 * us);
    CHECK(b.table.next_event() == 20 * ms + 60 * us);
    b.table.advance(21 * ms);
    auto const short_of_time = b.ask(40 * ms);
    b.row(0, short_of_time.id, 49 * ms);
    b.row(1, short_of_time.id, 49 * ms);
    CHECK(b.table.next_event() == 50 * ms);
    b.table.advance(50 * ms);
    CHECK(b.table.result(short_of_time.slot) == outcome::partial);
    CHECK(b.table.why(short_of_time.slot, 2) == miss::expired);
}

TEST_CASE("request_table: at the deadline fewer than k are a failure, whose rows can be read") {
    bench b({.members = 3, .k = 2});
    auto const r = b.ask(0);
    b.row(1, r.id, 1 * ms);
    b.table.advance(10 * ms - 1);
    CHECK(b.decided().empty());
    b.table.advance(10 * ms);
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::failed);
    CHECK(b.table.contributions(r.slot).size() == 1);
    CHECK(b.table.contributors(r.slot) == member_set{1});
    CHECK(b.table.why(r.slot, 0) == miss::expired);
    CHECK(b.table.why(r.slot, 1) == miss::none);
}

TEST_CASE("request_table: a row at the deadline is late, whoever looks at the clock first") {
    bench b({.members = 2, .k = 1});
    auto const r = b.ask(0);
    CHECK(b.row(0, r.id, 10 * ms) == arrival::late);
    CHECK(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::failed);
    CHECK(b.table.decided_ns(r.slot) == 10 * ms);
    CHECK(b.table.lateness(0).percentile(50) == 0);
}

TEST_CASE("request_table: a bad row that its member found itself is a refused row, too") {
    bench b({.members = 2});
    auto const r = b.ask(0);
    b.table.declined(0, 100, r.id, decline::bad_row, us);
    CHECK(b.row(1, r.id, 2 * us) == arrival::counted);
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::partial);
    CHECK(b.table.why(r.slot, 0) == miss::refused_row);
    CHECK(b.table.counters(0).declined_for(decline::bad_row) == 1);
    CHECK(b.table.counters(0).refused() == 1);
}

TEST_CASE("request_table: k that cannot be reached any more is a failure at once") {
    bench b({.members = 3, .k = 2});
    auto const r = b.ask(0);
    b.decline_it(0, r.id, us);
    CHECK(b.decided().empty());
    CHECK(b.row(1, r.id, 2 * us, row_check::not_a_number) == arrival::refused);
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::failed);
    CHECK(b.table.why(r.slot, 0) == miss::declined);
    CHECK(b.table.why(r.slot, 1) == miss::refused_row);
    CHECK(b.table.why(r.slot, 2) == miss::late);
    CHECK(b.table.counters(0).declined_for(decline::overloaded) == 1);
    CHECK(b.table.counters(1).refused_rows[static_cast<std::size_t>(row_check::not_a_number)] == 1);
}

TEST_CASE("request_table: when all that can come are in, nothing is waited for") {
    bench b({.members = 3, .k = 2});
    auto const r = b.ask(0);
    b.row(0, r.id, 1 * ms);
    b.row(1, r.id, 1 * ms);
    b.decline_it(2, r.id, 1 * ms + us);
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::partial);
    CHECK(b.table.decided_ns(r.slot) == 1 * ms + us);
}

TEST_CASE("request_table: fewer than k members at hand: decided at once, nobody asked") {
    bench b({.members = 3, .k = 2});
    b.table.lost(0, 0);
    b.table.draining(2);
    CHECK(b.table.admitted_members() == 1);
    auto const r = b.ask(us);
    CHECK(r.refused == outcome::full);
    CHECK(b.table.asked(r.slot).empty());
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::failed);
    CHECK(b.table.why(r.slot, 0) == miss::absent);
    CHECK(b.table.why(r.slot, 1) == miss::not_asked);
    CHECK(b.table.why(r.slot, 2) == miss::absent);
    CHECK(b.table.unanswered_by(1) == 0);
    auto const expired = b.table.begin({.entered = 0, .deadline = us, .k = 1}, us);
    CHECK(b.table.result(expired.slot) == outcome::failed);
    CHECK(b.table.why(expired.slot, 1) == miss::expired);
}

TEST_CASE("request_table: a request among some, with a k of its own") {
    bench b({.members = 4, .k = 3});
    member_set const two{1, 3, 900};
    auto const r = b.ask(0, 10 * ms, 1, &two);
    CHECK(list(b.table.asked(r.slot)) == std::vector<peer_index>{1, 3});
    CHECK(b.row(0, r.id, us) == arrival::stale);
    b.row(1, r.id, us);
    b.row(3, r.id, us);
    CHECK(b.table.result(r.slot) == outcome::full);
    CHECK(b.table.why(r.slot, 0) == miss::not_asked);
    auto const beyond = b.ask(us, 10 * ms, 3, &two);
    CHECK(b.table.result(beyond.slot) == outcome::failed);
}

TEST_CASE(
    "request_table: a member with all its credits unanswered is not asked; late answers give them back") {
    bench b({.members = 2, .in_flight = 8, .credits = 2, .k = 1});
    for (int i = 0; i < 2; ++i) {
        auto const r = b.ask(i * 20 * ms);
        b.row(0, r.id, i * 20 * ms + us);
        b.table.advance(i * 20 * ms + 10 * ms);
        b.free(r.slot);
    }
    CHECK(b.table.unanswered_by(1) == 2);
    auto const r = b.ask(40 * ms);
    CHECK(list(b.table.asked(r.slot)) == std::vector<peer_index>{0});
    b.row(0, r.id, 40 * ms + us);
    CHECK(b.table.result(r.slot) == outcome::partial); // at once: nobody else is waited for
    CHECK(b.table.why(r.slot, 1) == miss::no_credit);
    CHECK(b.table.counters(1).missing_for(miss::no_credit) == 1);
    b.table.declined(1, 101, r.id, decline::unspecified, 41 * ms); // does not owe it
    CHECK(b.table.unanswered_by(1) == 2);
    CHECK(b.table.counters(1).stale == 1);
    std::uint64_t const first = r.id - 16; // ids count by slots, of which there are 8
    CHECK(b.row(1, first, 41 * ms) == arrival::late);
    CHECK(b.table.unanswered_by(1) == 1);
    CHECK(b.row(1, first, 41 * ms) == arrival::stale);
    CHECK(list(b.table.asked(b.ask(42 * ms).slot)) == std::vector<peer_index>{0, 1});
}

TEST_CASE("request_table: a request that needs a member without credit waits for one, the oldest first") {
    using asks = std::vector<std::pair<slot_index, peer_index>>;
    bench b({.members = 2, .in_flight = 8, .credits = 2, .k = 2});
    auto const owed = b.without_credit(1, 2, 2);
    auto const first = b.ask(ms), second = b.ask(ms);
    CHECK(list(b.table.asked(first.slot)) == std::vector<peer_index>{0});
    CHECK(b.decided().empty()); // neither has failed
    CHECK(b.later() == asks{});
    CHECK(b.row(0, first.id, 2 * ms) == arrival::counted);
    CHECK(b.decided().empty());
    CHECK(b.row(1, owed[0], 3 * ms) == arrival::late);
    CHECK(b.later() == asks{{first.slot, 1}});
    CHECK(b.table.unanswered_by(1) == 2);
    CHECK(list(b.table.asked(first.slot)) == std::vector<peer_index>{0, 1});
    CHECK(b.row(1, owed[1], 3 * ms) == arrival::late);
    CHECK(b.later() == asks{{second.slot, 1}});
    CHECK(b.row(1, first.id, 4 * ms) == arrival::counted);
    CHECK(b.decided() == std::vector<slot_index>{first.slot});
    CHECK(b.table.result(first.slot) == outcome::full);
    CHECK(b.table.why(first.slot, 1) == miss::none);
    b.table.advance(11 * ms); // the deadline
    CHECK(b.table.result(second.slot) == outcome::failed);
    CHECK(b.table.why(second.slot, 1) == miss::expired);
    auto const& counts = b.table.counters(1);
    CHECK(counts.asked == 4);
    CHECK(counts.answered == 1);
    CHECK(counts.missed == 3);
}

TEST_CASE("request_table: nobody has a credit: a request waits to its deadline, and then says so") {
    bench b({.members = 1, .in_flight = 8, .credits = 1, .k = 1});
    (void)b.without_credit(0, 1, 1);
    auto const r = b.ask(ms);
    CHECK(b.table.asked(r.slot).empty());
    CHECK(b.table.next_event() == 11 * ms);
    b.table.advance(11 * ms);
    CHECK(b.decided() == std::vector<slot_index>{r.slot});
    CHECK(b.table.result(r.slot) == outcome::failed);
    CHECK(b.table.why(r.slot, 0) == miss::no_credit);
    CHECK(b.table.counters(0).asked == 1);
    auto const cancelled = b.ask(12 * ms);
    CHECK(b.table.cancel(cancelled.slot, cancelled.id));
    CHECK(!b.table.any_waiting());
}

TEST_CASE("request_table: a member that a request waits for is lost or leaves: it fails at once") {
    for (bool const leaves : {false, true}) {
        bench b({.members = 3, .in_flight = 8, .credits = 1, .k = 2});
        (void)b.without_credit(2, 3, 1);
        auto const r = b.ask(ms);
        b.table.lost(1, 2 * ms);
        CHECK(b.decided().empty()); // the third may still be asked
        if (leaves)
            b.table.draining(2);
        else
            b.table.lost(2, 3 * ms);
        CHECK(b.decided() == std::vector<slot_index>{r.slot});
        CHECK(b.table.result(r.slot) == outcome::failed);
        CHECK(b.table.why(r.slot, 1) == miss::lost);
        CHECK(b.table.why(r.slot, 2) == (leaves ? miss::absent : miss::lost));
        CHECK(!b.table.any_waiting());
    }
}

TEST_CASE("request_table: once k have come, a member without credit is not asked any more") {
    bench b({.members = 3, .in_flight = 8, .credits = 1, .k = 1});
    auto const owed = b.without_credit(2, 3, 1);
    auto const r = b.ask(ms);
    CHECK(b.table.any_waiting());
    CHECK(b.row(0, r.id, 2 * ms) == arrival::counted);
    CHECK(!b.table.any_waiting());
    CHECK(b.row(2, owed[0], 2 * ms) == arrival::late);
    CHECK(b.later().empty());
    CHECK(b.row(1, r.id, 2 * ms + 10 * us) == arrival::counted);
    CHECK(b.table.result(r.slot) == outcome::partial); // of those who were asked all are in
    CHECK(b.table.why(r.slot, 2) == miss::no_credit);
}

TEST_CASE("request_table: what a peer has no room for waits until it answers, or a row is given back") {
    using asks = std::vector<std::pair<slot_index, peer_index>>;
    bench b({.members = 1, .in_flight = 8, .k = 1});
    auto const held = b.ask(0), open = b.ask(0);
    CHECK(b.row(0, held.id, us) == arrival::counted); // and its place is taken until the release
    auto const r = b.ask(us), after = b.ask(us, 20 * ms);
    b.table.unsent(0, 100, r.id, us);
    b.table.unsent(0, 100, after.id, us);
    CHECK(b.decided() == std::vector<slot_index>{held.slot});
    CHECK(b.later() == asks{}); // not again and again
    CHECK(b.table.unanswered_by(0) == 1);
    b.free(held.slot);
    CHECK(b.later() == asks{{r.slot, 0}, {after.slot, 0}});
    b.table.unsent(0, 100, after.id, us); // there was room for one
    CHECK(b.later() == asks{});
    CHECK(b.row(0, open.id, 2 * us) == arrival::counted);
    CHECK(b.later() == asks{{after.slot, 0}});
    CHECK(list(b.table.asked(after.slot)) == std::vector<peer_index>{0});
    CHECK(b.row(0, r.id, 3 * us) == arrival::counted);
    CHECK(b.row(0, after.id, 3 * us) == arrival::counted);
    CHECK(b.table.counters(0).asked == 4);
    CHECK(b.table.counters(0).answered == 4);
}

TEST_CASE("request_table: no slot is busy, and closed is the end") {
    bench b({.members = 1, .in_flight = 2});
    auto const first = b.ask(0), second = b.ask(0);
    CHECK(b.ask(0).refused == outcome::busy);
    CHECK(b.table.in_flight() == 2);
    b.row(0, first.id, us);
    CHECK(b.ask(us).refused == outcome::busy); // decided, not released
    b.free(first.slot);
    auto const third = b.ask(2 * us);
    CHECK(third.refused == outcome::full);
    CHECK(third.slot == first.slot);
    CHECK(third.id != first.id);
    b.table.close(3 * us);
    CHECK(b.table.result(second.slot) == outcome::closed);
    CHECK(b.table.result(third.slot) == outcome::closed);
    CHECK(b.decided().size() == 2);
    CHECK(b.ask(4 * us).refused == outcome::closed);
    CHECK(b.table.totals().ended_as(outcome::busy) == 2);
    CHECK(b.table.totals().ended_as(outcome::closed) == 3);
    CHECK(b.table.totals().ended_as(outcome::full) == 1);
}

TEST_CASE("request_table: cancelled once, and only by its id") {
    bench b({.members = 2});
    auto const r = b.ask(0);
    CHECK_FALSE(b.table.cancel(r.slot, r.id + 1));
    CHECK_FALSE(b.table.cancel(999, r.id));
    CHECK(b.table.cancel(r.slot, r.id));
    CHECK_FALSE(b.table.cancel(r.slot, r.id));
    CHECK(b.table.result(r.slot) == outcome::cancelled);
    CHECK(b.row(0, r.id, us) == arrival::late);
    CHECK(b.decided().size() == 1);
    b.free(r.slot);
    CHECK_FALSE(b.table.cancel(r.slot, r.id));
    CHECK(b.table.next_event() == never_ns);
}

TEST_CASE("request_table: released before anyone asked what was decided") {
    bench b({.members = 1, .in_flight = 3});
    auto const one = b.ask(0), two = b.ask(0), three = b.ask(0);
    for (auto const& r : {one, two, three}) b.row(0, r.id, us);
    b.free(two.slot);
    auto const four = b.ask(2 * us);
    CHECK(four.slot == two.slot);
    CHECK(b.decided() == std::vector<slot_index>{one.slot, three.slot});
    b.free(four.slot); // undecided: as if cancelled
    CHECK(b.decided().empty());
    CHECK(b.table.totals().ended_as(outcome::cancelled) == 1);
}

TEST_CASE("request_table: what a peer had not answered is missed when it is lost; what it had stays") {
    bench b({.members = 3, .k = 2});
    auto const r = b.ask(0), other = b.ask(0);
    b.row(1, r.id, us);
    b.table.lost(1, 2 * us);
    CHECK(b.table.why(other.slot, 1) == miss::lost);
    b.row(0, r.id, 3 * us);
    b.row(2, r.id, 3 * us);
    CHECK(b.table.result(r.slot) == outcome::full);
    b.row(0, other.id, 3 * us);
    b.row(2, other.id, 3 * us);
    CHECK(b.table.result(other.slot) == outcome::partial);
    CHECK(b.row(1, other.id, 4 * us) == arrival::stale);
    CHECK(b.table.counters(1).lost == 1);
    b.table.lost(1, 5 * us);
    CHECK(b.table.counters(1).lost == 1);
}

TEST_CASE("request_table: nothing of an earlier incarnation counts") {
    bench b({.members = 2, .k = 1});
    auto const r = b.ask(0);
    b.table.admitted(1, 777, us);                                                   // takes over
    CHECK(b.row(1, r.id, 2 * us) == arrival::stale);                                // from 101
    CHECK(b.table.row(1, 777, r.id, 0, row_check::good, 2 * us) == arrival::stale); // was not asked
    b.row(0, r.id, 3 * us);
    CHECK(b.table.result(r.slot) == outcome::partial);
    CHECK(b.table.why(r.slot, 1) == miss::lost);
    auto const next = b.ask(4 * us);
    CHECK(b.row(1, next.id, 5 * us) == arrival::stale); // the new one was asked
    CHECK(b.table.row(1, 777, next.id, 0, row_check::good, 5 * us) == arrival::counted);
    CHECK(b.table.row(99, 1, next.id, 0, row_check::good, 5 * us) == arrival::stale); // no such peer
}

TEST_CASE("request_table: one that leaves is asked no more, and its rows count") {
    bench b({.members = 2, .k = 1});
    auto const r = b.ask(0);
    b.table.draining(1);
    CHECK(b.row(1, r.id, us) == arrival::counted);
    CHECK(list(b.table.asked(b.ask(us).slot)) == std::vector<peer_index>{0});
}

TEST_CASE("request_table: a second answer is a duplicate") {
    bench b({.members = 2, .k = 2});
    auto const r = b.ask(0);
    CHECK(b.row(0, r.id, us) == arrival::counted);
    CHECK(b.row(0, r.id, us) == arrival::duplicate);
    b.decline_it(0, r.id, us);
    CHECK(b.table.counters(0).duplicate == 2);
    CHECK(b.decided().empty());
    b.row(1, r.id, us);
    CHECK(b.row(0, r.id, us) == arrival::duplicate);
    b.free(r.slot);
    CHECK(b.row(0, r.id, us) == arrival::stale);
    CHECK(b.row(0, 12345, us) == arrival::stale);
    CHECK(b.row(0, 0, us) == arrival::stale);
}

TEST_CASE(
    "request_table: three times late: on probation, asked and not waited for, until three times in time") {
    bench b({.members = 3, .k = 2});
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(b.table.on_probation(2));
        b.round(i * 20 * ms, 3, 2);
    }
    CHECK(b.table.on_probation(2));
    std::size_t who = 9;
    bool on = false;
    REQUIRE(b.table.next_probation(who, on));
    CHECK(who == 2);
    CHECK(on);
    CHECK_FALSE(b.table.next_probation(who, on));

    auto const r = b.ask(100 * ms); // decided without waiting for it
    CHECK(b.table.asked(r.slot).size() == 3);
    b.row(0, r.id, 101 * ms);
    b.row(1, r.id, 101 * ms);
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::partial);
    CHECK(b.table.why(r.slot, 2) == miss::probation);
    // Its row comes after the decision and soon after the k-th: in time, as it would have been for those that are waited for.
    CHECK(b.row(2, r.id, 101 * ms + 149 * us) == arrival::late);
    auto const second = b.ask(120 * ms); // its row counts if it is there
    b.row(2, second.id, 121 * ms);
    b.row(0, second.id, 121 * ms);
    b.row(1, second.id, 121 * ms);
    CHECK(b.table.result(second.slot) == outcome::full);
    CHECK(b.table.on_probation(2));
    auto const third = b.ask(140 * ms);
    b.row(2, third.id, 141 * ms);
    CHECK_FALSE(b.table.on_probation(2));
    REQUIRE(b.table.next_probation(who, on));
    CHECK_FALSE(on);
}

TEST_CASE("request_table: on probation, a row that is late begins the count anew") {
    bench b({.members = 3, .k = 2});
    for (int i = 0; i < 3; ++i) b.round(i * 20 * ms, 3, 2);
    std::int64_t now = 100 * ms;
    for (bool const in_time : {true, true, false, true, true, true}) {
        CHECK(b.table.on_probation(2));
        auto const r = b.ask(now);
        b.row(0, r.id, now + ms);
        b.row(1, r.id, now + ms);
        b.row(2, r.id, now + ms + (in_time ? 999 : 1000) * us);
        b.free(r.slot);
        now += 20 * ms;
    }
    CHECK_FALSE(b.table.on_probation(2));
}

TEST_CASE("request_table: a member that misses a grace by less than a wait for a core is not slow") {
    bench b({.members = 4, .k = 3});
    for (int i = 0; i < 1000; ++i) { // a request each 300 us; member 3 waits for a core each time
        std::int64_t const now = i * 300 * us;
        auto const r = b.ask(now);
        for (peer_index p = 0; p < 3; ++p) b.row(p, r.id, now + 100 * us);
        b.table.advance(now + 150 * us); // the grace is 50 us
        REQUIRE(b.decided().size() == 1);
        CHECK(b.table.result(r.slot) == outcome::partial);
        CHECK(b.table.why(r.slot, 3) == miss::late);
        CHECK(b.row(3, r.id, now + 250 * us) == arrival::late);
        b.free(r.slot);
        CHECK_FALSE(b.table.on_probation(3));
    }
    CHECK(b.table.counters(3).late == 1000);
}

TEST_CASE("request_table: one long wait for a core is late once, and a member that is stopped is on "
          "probation soon") {
    bench b({.members = 2, .k = 1});
    std::vector<request_table::begun> owed;
    std::int64_t now = 0;
    auto const ask = [&] {
        auto const r = b.ask(now);
        owed.push_back(r);
        b.row(0, r.id, now + us);
        now += 100 * us;
        b.table.advance(now);
        CHECK(b.decided().size() == 1);
        b.free(r.slot);
    };
    for (int i = 0; i < 20; ++i) ask(); // 2 ms
    CHECK_FALSE(b.table.on_probation(1));
    for (auto const& r : owed) CHECK(b.row(1, r.id, now) == arrival::late);
    CHECK_FALSE(b.table.on_probation(1));
    while (now < 10 * ms && !b.table.on_probation(1)) ask();
    CHECK(b.table.on_probation(1));
    CHECK(now <= 7 * ms);
}

TEST_CASE("request_table: where fewer than k others remain, those on probation are waited for") {
    bench b({.members = 3, .k = 2});
    for (int i = 0; i < 3; ++i) b.round(i * 20 * ms, 3, 2);
    REQUIRE(b.table.on_probation(2));
    auto const r = b.ask(100 * ms);
    b.row(0, r.id, 101 * ms);
    b.decline_it(1, r.id, 101 * ms);
    CHECK(b.decided().empty());
    b.row(2, r.id, 108 * ms);
    REQUIRE(b.decided().size() == 1);
    CHECK(b.table.result(r.slot) == outcome::partial);
    CHECK(b.table.contributors(r.slot) == member_set{0, 2});
    auto const alone = b.ask(120 * ms, 10 * ms, 3);
    b.row(0, alone.id, 121 * ms);
    b.row(1, alone.id, 121 * ms);
    CHECK(b.decided().empty());
    b.table.advance(130 * ms);
    CHECK(b.table.result(alone.slot) == outcome::failed);
    CHECK(b.table.why(alone.slot, 2) == miss::expired);
}

TEST_CASE(
    "request_table: a new connection begins without probation; requests that end early are no verdict") {
    bench b({.members = 2, .k = 1});
    for (int i = 0; i < 10; ++i) {
        auto const r = b.ask(i * 20 * ms);
        b.table.cancel(r.slot, r.id);
        b.free(r.slot);
    }
    CHECK_FALSE(b.table.on_probation(0));
    for (int i = 10; i < 13; ++i) b.round(i * 20 * ms, 2, 1);
    CHECK(b.table.on_probation(1));
    b.table.admitted(1, 500, 300 * ms);
    CHECK_FALSE(b.table.on_probation(1));
}

TEST_CASE("request_table: expected requests are sent to nobody, and cost no credit") {
    bench b({.members = 2, .credits = 1, .k = 2});
    auto const r = b.expect(42, 0);
    CHECK(r.refused == outcome::full);
    CHECK(r.id == 42);
    CHECK(b.table.asked(r.slot).empty());
    CHECK(b.table.unanswered_by(0) == 0);
    CHECK(b.expect(42, 0).refused == outcome::failed); // in flight
    CHECK(b.expect(std::uint64_t{1} << 63, 0).refused == outcome::failed);
    auto const beside = b.ask(0);
    CHECK(b.row(0, 42, us) == arrival::counted);
    CHECK(b.row(0, 42, us) == arrival::duplicate);
    CHECK(b.row(1, 42, 2 * us) == arrival::counted);
    CHECK(b.table.result(r.slot) == outcome::full);
    CHECK_FALSE(b.table.is_decided(beside.slot));
    b.free(r.slot);
    CHECK(b.row(1, 42, 3 * us) == arrival::stale);
    auto const again = b.expect(42, 4 * us);
    b.table.lost(1, 5 * us);
    CHECK(b.table.result(again.slot) == outcome::failed);
    CHECK(b.table.why(again.slot, 1) == miss::lost);
}

TEST_CASE("request_table: the roster grows; requests in flight do not ask the new member") {
    bench b({.members = 1, .k = 1});
    auto const r = b.ask(0);
    b.table.add_member();
    CHECK(b.table.members() == 2);
    b.table.admitted(1, 101, us);
    CHECK(b.row(1, r.id, us) == arrival::stale);
    b.row(0, r.id, us);
    CHECK(b.table.result(r.slot) == outcome::full);
    CHECK(b.table.why(r.slot, 1) == miss::not_asked);
    CHECK(b.table.asked(b.ask(2 * us).slot).size() == 2);
}

// ---- replicas

// Members of two replicas, each of which has answered `rounds` requests after 1 ms.
struct replicated : bench {
    explicit replicated(int rounds, std::size_t members = 2, herring::hedging_tuning hedging = {})
        : bench({.members = members, .replicas = 2, .k = members, .hedging = hedging}) {
        for (int i = 0; i < rounds; ++i, now += 2 * ms) {
            auto const r = ask(now);
            for (peer_index p = 0; p < 2 * members; p += 2) row(p, r.id, now + ms);
            decided();
            free(r.slot);
        }
    }
    std::vector<std::pair<slot_index, peer_index>> hedges() {
        std::vector<std::pair<slot_index, peer_index>> all;
        slot_index s = 0;
        for (peer_index p = 0; table.next_hedge(s, p);) all.emplace_back(s, p);
        return all;
    }
    std::int64_t now = 0;
};
using hedges = std::vector<std::pair<slot_index, peer_index>>;

TEST_CASE("request_table: the replica with the fewest unanswered requests is asked") {
    replicated b(0);
    CHECK(list(b.table.asked(b.ask(0).slot)) == std::vector<peer_index>{0, 2});
    CHECK(list(b.table.asked(b.ask(0).slot)) == std::vector<peer_index>{1, 3});
    b.table.lost(3, 0);
    CHECK(list(b.table.asked(b.ask(0).slot)) == std::vector<peer_index>{0, 2});
}

TEST_CASE("request_table: a hedge goes to the other replica after the 95th percentile, once") {
    replicated b(100);
    std::int64_t const p95 = time_window::rounded(ms);
    auto const r = b.ask(b.now);
    CHECK(b.table.next_event() == b.now + p95);
    b.row(0, r.id, b.now + us);
    b.table.advance(b.now + p95 - 1);
    CHECK(b.hedges().empty());
    b.table.advance(b.now + p95);
    CHECK(b.hedges() == hedges{{r.slot, 3}});
    CHECK(b.table.counters(1).hedged == 1);
    CHECK(b.table.counters(0).hedged == 0);
    CHECK(b.table.next_event() == b.now + 10 * ms);
    CHECK(b.row(3, r.id, b.now + 2 * ms) == arrival::counted);
    REQUIRE(b.table.is_decided(r.slot));
    CHECK(b.table.result(r.slot) == outcome::full);
    CHECK(b.table.contributions(r.slot)[1].peer == 3);
    CHECK(b.table.unanswered_by(2) == 1);
    CHECK(b.row(2, r.id, b.now + 3 * ms) == arrival::late); // the loser
    CHECK(b.table.unanswered_by(2) == 0);
    CHECK(b.table.lateness(1).size() == 0); // the member was not late
}

TEST_CASE("request_table: a decline of one replica leaves the other") {
    replicated b(100);
    auto const r = b.ask(b.now);
    b.row(0, r.id, b.now + us);
    b.table.advance(b.now + 2 * ms);
    CHECK(b.hedges() == hedges{{r.slot, 3}});
    b.decline_it(2, r.id, b.now + 2 * ms);
    CHECK_FALSE(b.table.is_decided(r.slot));
    CHECK(b.row(3, r.id, b.now + 2 * ms, row_check::wrong_size) == arrival::refused);
    REQUIRE(b.table.is_decided(r.slot));
    CHECK(b.table.why(r.slot, 1) == miss::refused_row);
}

TEST_CASE("request_table: no hedge before 100 samples, without budget, or without another replica") {
    replicated few(99);
    CHECK(few.table.next_event() == never_ns);
    (void)few.ask(few.now);
    CHECK(few.table.next_event() == few.now + 10 * ms);

    replicated poor(100, 2, {.percent = 5, .burst = 0});
    (void)poor.ask(poor.now);
    poor.table.advance(poor.now + 5 * ms);
    CHECK(poor.hedges().empty());
    CHECK(poor.table.totals().hedges_withheld == 2);

    replicated alone(100);
    alone.table.draining(1);
    alone.table.lost(3, alone.now);
    (void)alone.ask(alone.now);
    alone.table.advance(alone.now + 5 * ms);
    CHECK(alone.hedges().empty());
    CHECK(alone.table.totals().hedges_withheld == 0);

    replicated off(100, 2, {.percent = 0});
    (void)off.ask(off.now);
    CHECK(off.table.next_event() == off.now + 10 * ms);
}

TEST_CASE("request_table: hedges are at most 5 % of what is sent") {
    replicated b(100, 1);
    for (int i = 0; i < 2000; ++i, b.now += 20 * ms) {
        auto const r = b.ask(b.now);
        std::int64_t const answered = b.now + (i % 25 == 0 ? 5 * ms : ms); // 4 % are slow
        b.table.advance(answered);
        for (auto const& [slot, peer] : b.hedges()) b.row(peer, r.id, answered);
        b.row(b.table.asked(r.slot)[0], r.id, answered + us);
        b.decided();
        b.free(r.slot);
        CHECK(b.table.totals().hedges * 100 <= static_cast<std::uint64_t>(i + 1 + 100) * 5);
    }
    CHECK(b.table.totals().hedges >= 79);
    CHECK(b.table.totals().hedges_withheld == 0);
    for (int i = 0; i < 100; ++i, b.now += 20 * ms) { // from here on all are slow
        auto const r = b.ask(b.now);
        b.table.advance(b.now + 5 * ms);
        (void)b.hedges();
        b.table.cancel(r.slot, r.id);
        b.free(r.slot);
    }
    CHECK(b.table.totals().hedges <= 79 + 32 + 5 + 1); // what was saved up, and 5 %
    CHECK(b.table.totals().hedges_withheld >= 1);
}

TEST_CASE("request_table: a request allows its part of a hedge once, however often it could not be sent") {
    for (std::uint32_t const percent : {50u, 100u}) {
        CAPTURE(percent);
        replicated b(0, 1, {.percent = percent});
        auto const r = b.ask(0);
        peer_index to = 0;
        for (int tries = 0; tries < 20; ++tries) {
            b.table.unsent(to, 100 + to, r.id, us);
            to = 1 - to;
            CHECK(b.row(to, 12345, us) == arrival::stale); // it answers something: there may be room
            CHECK(b.later() == std::vector<std::pair<slot_index, peer_index>>{{r.slot, to}});
        }
        CHECK(b.table.counters(0).asked == 1);
        CHECK(b.row(1 - to, 12345, us) == arrival::stale);
        b.table.lost(to, 2 * us);
        CHECK(b.hedges() == (percent == 100 ? hedges{{r.slot, 1 - to}} : hedges{}));
        CHECK(b.table.totals().hedges_withheld == (percent == 100 ? 0 : 1));
    }
}

TEST_CASE("request_table: a replica that is lost is replaced at once") {
    replicated b(40); // no percentile yet, and a budget of 4
    auto const r = b.ask(b.now);
    b.table.lost(2, b.now + us);
    CHECK(b.hedges() == hedges{{r.slot, 3}});
    CHECK_FALSE(b.table.is_decided(r.slot));
    b.row(0, r.id, b.now + 2 * us);
    CHECK(b.row(3, r.id, b.now + 2 * us) == arrival::counted);
    CHECK(b.table.result(r.slot) == outcome::full);
    auto const second = b.ask(b.now + ms);
    b.table.lost(3, b.now + ms);
    CHECK(b.table.result(second.slot) == outcome::failed);
    CHECK(b.table.why(second.slot, 1) == miss::lost);
}

TEST_CASE("request_table: a hedge that was not sent in time is not owed") {
    replicated b(100);
    auto const r = b.ask(b.now);
    b.table.advance(b.now + 2 * ms);
    CHECK(b.table.unanswered_by(1) == 1);
    b.row(0, r.id, b.now + 2 * ms);
    b.row(2, r.id, b.now + 2 * ms);
    CHECK(b.hedges().empty());
    CHECK(b.table.unanswered_by(1) == 0);
    CHECK(b.table.unanswered_by(3) == 0);
    CHECK(b.table.totals().hedges == 0);
    CHECK(b.table.counters(0).hedged == 0);
}

TEST_CASE("request_table: asked is answered and missed") {
    bench b({.members = 3, .k = 2});
    b.round(0, 3, 1);
    auto const r = b.ask(20 * ms);
    b.decline_it(0, r.id, 21 * ms);
    b.table.lost(1, 21 * ms);
    for (std::size_t m = 0; m < 3; ++m) {
        herring::member_counters const& c = b.table.counters(m);
        CHECK(c.asked == 2);
        CHECK(c.asked == c.answered + c.missed);
        CHECK(c.missing_for(miss::none) == c.answered);
    }
    CHECK(b.table.counters(1).late == 1);
    CHECK(b.table.totals().late_rows == 1);
    CHECK(b.table.lateness(1).percentile(50) == time_window::rounded(8 * ms - 150 * us));
}

TEST_CASE("request_table: an early row counts when it is expected, if it is not too old by then") {
    for (std::int64_t const at : {3 * ms - 1, 3 * ms}) {
        bench b({.members = 2, .k = 1, .early_ns = 2 * ms});
        CHECK(b.row(1, 5, 1 * ms) == arrival::early);
        CHECK(b.row(1, 5, 1 * ms) == arrival::duplicate);
        CHECK(b.table.counters(1).early == 1);
        CHECK(b.table.next_event() == never_ns);
        auto const r = b.expect(5, at);
        bool const in_time = at < 3 * ms;
        CHECK(b.table.counters(1).early_answered == (in_time ? 1 : 0));
        CHECK(b.table.counters(1).early_expired == (in_time ? 0 : 1));
        CHECK(b.returned() == (in_time ? std::vector<place_index>{} : std::vector<place_index>{8}));
        b.table.advance(20 * ms);
        REQUIRE(b.decided() == std::vector<slot_index>{r.slot});
        CHECK(b.table.result(r.slot) == (in_time ? outcome::partial : outcome::failed));
        CHECK(b.table.contributors(r.slot) == (in_time ? member_set{1} : member_set{}));
        if (in_time) CHECK(b.table.latency_ns(r.slot, 1) == 0);
    }
}

TEST_CASE("request_table: early rows of a peer that is lost, and those that did not pass their check") {
    bench b({.members = 3, .k = 1, .early_ns = 2 * ms});
    CHECK(b.row(0, 5, 0) == arrival::early);
    CHECK(b.row(1, 5, 0, row_check::not_a_number) == arrival::early);
    CHECK(b.row(2, 5, 0) == arrival::early);
    b.table.admitted(0, 200, us); // another process
    CHECK(b.returned() == std::vector<place_index>{7});
    auto const r = b.expect(5, 2 * us);
    CHECK(b.returned() == std::vector<place_index>{8});
    CHECK(b.table.counters(1).refused() == 1);
    b.table.advance(20 * ms);
    CHECK(b.table.contributors(r.slot) == member_set{2});
    CHECK(b.table.why(r.slot, 0) == miss::late);
    CHECK(b.table.why(r.slot, 1) == miss::refused_row);
    b.free(r.slot);
    // Of a request that has ended lately, of one that the frontend sends, of nobody's, after the end: none is kept.
    CHECK(b.row(2, 5, 20 * ms) == arrival::stale);
    CHECK(b.row(2, std::uint64_t{1} << 63 | 9, 20 * ms) == arrival::stale);
    CHECK(b.row(2, 0, 20 * ms) == arrival::stale);
    b.table.close(20 * ms);
    CHECK(b.row(2, 6, 20 * ms) == arrival::stale);
}

} // namespace ensemble_request_table_test
