// herring: tests of ensemble/request_roster.hpp: a roster, credits, hedging and probation.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_roster.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <map>
#include <random>

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

namespace ensemble_credits_test {

using namespace herring::detail::ensembles;

TEST_CASE("credits: as many as there are, and each comes back once") {
    credits c(3);
    CHECK(c.size() == 3);
    for (std::uint64_t id : {10u, 13u, 16u}) { // all want the same place
        CHECK(c.left());
        c.take(id, static_cast<std::int64_t>(id) * 5);
    }
    CHECK_FALSE(c.left());
    CHECK(c.find(19) == nullptr);
    CHECK(c.find(0) == nullptr);
    REQUIRE(c.find(13) != nullptr);
    CHECK(c.find(13)->asked == 65);
    c.give_back(*c.find(13));
    CHECK(c.find(13) == nullptr);
    CHECK(c.used() == 2);
    REQUIRE(c.find(16) != nullptr); // behind the gap
    c.clear();
    CHECK(c.used() == 0);
    CHECK(c.find(10) == nullptr);
}

TEST_CASE("credits: against a map") {
    std::mt19937 random(3);
    for (std::size_t const size : {1u, 2u, 7u, 64u}) {
        credits c(size);
        std::map<std::uint64_t, std::int64_t> model;
        std::uint64_t next = std::uint64_t{1} << 63;
        for (std::int64_t step = 0; step < 3000; ++step) {
            if (random() % 2 == 0 && c.left()) {
                next += 1 + random() % 5;
                c.take(next, step);
                model[next] = step;
            } else if (!model.empty()) {
                auto const at =
                    std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
                unanswered* const found = c.find(at->first);
                REQUIRE(found != nullptr);
                CHECK(found->id == at->first);
                CHECK(found->asked == at->second);
                c.give_back(*found);
                model.erase(at);
            }
            CHECK(c.used() == model.size());
            CHECK(c.left() == (model.size() < size));
        }
        std::size_t seen = 0;
        c.for_each([&](unanswered const& ask) { seen += model.count(ask.id); });
        CHECK(seen == model.size());
    }
}

} // namespace ensemble_credits_test

namespace ensemble_hedging_test {

using namespace herring::detail::ensembles;
using herring::hedging_tuning;

TEST_CASE("hedging: the delay is the 95th percentile, once there are samples, and at least the floor") {
    constexpr hedging_tuning tuning{};
    time_window latencies;
    hedge_delay delay;
    auto const sample = [&](std::int64_t ns) {
        latencies.add(ns);
        delay.sampled(latencies, tuning);
    };
    for (int i = 0; i < 99; ++i) sample(i < 50 ? 1'000'000 : 3'000'000);
    CHECK(delay.ns() == never_ns);
    sample(3'000'000);
    CHECK(delay.ns() == time_window::rounded(3'000'000));
    for (int i = 0; i < 1024 + 32; ++i) sample(10'000);
    CHECK(delay.ns() == 200'000); // the floor
}

TEST_CASE("hedging: the percentile is refreshed at every 32nd sample") {
    constexpr hedging_tuning tuning{.floor_us = 0, .samples = 1};
    time_window latencies;
    hedge_delay delay;
    latencies.add(40);
    delay.sampled(latencies, tuning);
    CHECK(delay.ns() == 40);
    for (int i = 0; i < 31; ++i) {
        latencies.add(60);
        delay.sampled(latencies, tuning);
        CHECK(delay.ns() == 40);
    }
    latencies.add(60);
    delay.sampled(latencies, tuning);
    CHECK(delay.ns() == 60);
}

TEST_CASE("hedging: at most 5 in 100 requests, and a bounded number saved up") {
    constexpr hedging_tuning tuning{};
    hedge_budget budget;
    CHECK_FALSE(budget.take());
    int hedges = 0;
    for (int sent = 1; sent <= 10'000; ++sent) {
        budget.sent(1, tuning);
        if (budget.take()) ++hedges;
        CHECK(hedges * 100 <= sent * 5);
    }
    CHECK(hedges == 500);
    budget.sent(1'000'000, tuning);
    for (hedges = 0; budget.take();) ++hedges;
    CHECK(hedges == 32);
    budget.give_back();
    CHECK(budget.take());
    CHECK_FALSE(budget.take());
}

TEST_CASE("hedging: what could not be sent allows nothing, until it is sent") {
    hedge_budget budget;
    hedging_tuning const tuning{.percent = 40};
    for (int tries = 0; tries < 100; ++tries) {
        budget.sent(1, tuning);
        budget.unsent(tuning);
    }
    budget.sent(2, tuning);
    CHECK_FALSE(budget.take());
    budget.sent(1, tuning);
    CHECK(budget.take());
    budget.unsent(tuning); // 20 hundredths are left, and no fewer than none after it
    budget.sent(2, tuning);
    CHECK_FALSE(budget.take());
}

TEST_CASE("hedging: the tuning prints") {
    CHECK(to_string(hedging_tuning{}) == "percent=5 floor_us=200 samples=100 burst=32");
}

} // namespace ensemble_hedging_test

namespace ensemble_probation_test {

using herring::quorum_tuning;
using herring::detail::ensembles::probation;

TEST_CASE("probation: three times late in a row, and three times in time") {
    constexpr quorum_tuning t{};
    probation p;
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.in_time(t)); // not in a row
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.on());
    CHECK(p.late(t));
    CHECK(p.on());
    CHECK_FALSE(p.late(t)); // it is on already
    CHECK_FALSE(p.in_time(t));
    CHECK_FALSE(p.in_time(t));
    CHECK_FALSE(p.late(t));
    CHECK_FALSE(p.in_time(t));
    CHECK_FALSE(p.in_time(t));
    CHECK(p.on());
    CHECK(p.in_time(t));
    CHECK_FALSE(p.on());
    CHECK_FALSE(p.late(t)); // counts from the beginning
    CHECK_FALSE(p.late(t));
    CHECK(p.late(t));
}

TEST_CASE("probation: numbers of the tuning, and none") {
    constexpr quorum_tuning quick{.probation_after = 1, .probation_left_after = 1};
    probation p;
    CHECK(p.late(quick));
    CHECK(p.in_time(quick));
    CHECK_FALSE(p.on());
    constexpr quorum_tuning never{.probation_after = 0};
    for (int i = 0; i < 100; ++i) CHECK_FALSE(p.late(never));
    CHECK_FALSE(p.on());
}

TEST_CASE("probation: a row that is late by less than a wait for a core is in time") {
    constexpr quorum_tuning t{.probation_after = 2, .probation_left_after = 1};
    constexpr std::int64_t ms = 1'000'000;
    probation p;
    for (std::uint64_t request = 1; request < 100; ++request) {
        std::int64_t const now = static_cast<std::int64_t>(request) * 10 * ms;
        CHECK_FALSE(p.missed(request, now + ms, now, t));
        CHECK_FALSE(p.came(request + 1, now, t)); // another's says nothing
        CHECK_FALSE(p.came(request, now + ms - 1, t));
    }
    CHECK_FALSE(p.on());
    CHECK_FALSE(p.missed(100, 1001 * ms, 1000 * ms, t));
    CHECK_FALSE(p.came(100, 1001 * ms, t)); // late
    CHECK_FALSE(p.missed(101, 1101 * ms, 1100 * ms, t));
    CHECK(p.came(101, 1101 * ms, t)); // twice
    CHECK(p.on());
    CHECK_FALSE(p.missed(102, 1201 * ms, 1200 * ms, t));
    CHECK(p.came(102, 1200 * ms, t)); // recovered
    CHECK_FALSE(p.on());
}

TEST_CASE(
    "probation: one absence counts once, however many requests end meanwhile; one without end counts on") {
    constexpr quorum_tuning t{};
    constexpr std::int64_t us = 1000;
    probation p;
    std::uint64_t request = 0;
    for (std::int64_t now = 0; now < 2000 * us; now += 10 * us)
        CHECK_FALSE(p.missed(++request, now + 1000 * us, now, t));
    CHECK_FALSE(p.on()); // 200 requests, in 2 ms: late once
    CHECK_FALSE(p.in_time(t));
    std::int64_t entered = -1;
    for (std::int64_t now = 0; entered < 0 && now < 10'000 * us; now += 10 * us)
        if (p.missed(++request, now + 1000 * us, now, t)) entered = now;
    CHECK(entered == 3000 * us);
    CHECK(p.on());
}

TEST_CASE("probation: what will not come is no verdict") {
    constexpr quorum_tuning t{.probation_after = 1};
    probation p;
    CHECK_FALSE(p.missed(1, 10, 0, t));
    p.forget(2);
    p.forget(1);
    CHECK_FALSE(p.missed(2, 1010, 1000, t)); // that of 1 was not late
    p.forget();
    CHECK_FALSE(p.missed(3, 2010, 2000, t));
    CHECK(p.missed(4, 2020, 2010, t)); // that of 3 was
    CHECK(p.on());
}

} // namespace ensemble_probation_test
