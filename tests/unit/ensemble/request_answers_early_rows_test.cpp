// herring: tests of ensemble/request_answers.hpp: how many rows are kept, for how long, in which order, and of whom.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_answers.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ensemble_early_rows_test {

using namespace herring::detail::ensembles;

constexpr std::int64_t age = 1000;

struct bench {
    explicit bench(std::size_t members = 2, std::size_t replicas = 1)
        : roster(replicas, 4, members), rows(roster, age) {}
    table_roster roster;
    early_rows rows;

    arrival keep(peer_index peer, std::uint64_t id, std::int64_t came, place_index place = 0) {
        return rows.keep({.id = id, .incarnation = 100 + peer, .came = came, .peer = peer, .place = place});
    }
    std::vector<place_index> returned() {
        std::vector<place_index> all;
        for (early_row row; rows.next_returned(row);) all.push_back(row.place);
        std::sort(all.begin(), all.end());
        return all;
    }
    auto& counts(std::size_t m) { return roster[m].counts; }
};

TEST_CASE("early rows: of each peer the newest ones, and the place of the oldest is given back") {
    bench b;
    for (std::uint32_t i = 0; i < early_places; ++i) CHECK(b.keep(0, 10 + i, i, i) == arrival::early);
    CHECK(b.returned().empty());
    CHECK(b.keep(1, 10, 0, 77) == arrival::early); // another one's places are its own
    CHECK(b.keep(0, 90, 5, 40) == arrival::early);
    CHECK(b.keep(0, 91, 5, 41) == arrival::early);
    CHECK(b.returned() == std::vector<place_index>{0, 1});
    CHECK(b.counts(0).early_evicted == 2);
    CHECK(b.counts(1).early_evicted == 0);
    early_row row;
    CHECK(b.rows.take(10, 6, row));
    CHECK(row.peer == 1); // that of peer 0 was the oldest
    CHECK(row.place == 77);
    CHECK(row.incarnation == 101);
    CHECK(!b.rows.take(10, 6, row));
    CHECK(b.rows.take(12, 6, row));
    CHECK(row.place == 2);
}

TEST_CASE("early rows: a flood of one peer takes nothing from the others") {
    bench b(3);
    CHECK(b.keep(1, 500, 0, 9) == arrival::early);
    std::size_t given_back = 0;
    for (std::uint64_t id = 1; id <= 400; ++id) {
        CHECK(b.keep(2, id, 1, 1) == arrival::early);
        given_back += b.returned().size();
    }
    CHECK(given_back == 400 - early_places);
    early_row row;
    CHECK(b.rows.take(500, 2, row));
    CHECK(row.place == 9);
}

TEST_CASE("early rows: for one id in the order in which they came, whoever sent them") {
    bench b(3);
    b.keep(2, 7, 0, 1);
    b.keep(0, 7, 0, 2);
    b.keep(1, 7, 0, 3);
    std::vector<peer_index> order;
    for (early_row row; b.rows.take(7, 1, row);) order.push_back(row.peer);
    CHECK(order == std::vector<peer_index>{2, 0, 1});
    CHECK(!b.rows.any());
}

TEST_CASE("early rows: kept up to their age, not a nanosecond longer") {
    bench b;
    b.keep(0, 1, 0, 1);
    b.keep(0, 2, 1, 2);
    early_row row;
    CHECK(!b.rows.take(1, age, row));
    CHECK(b.returned() == std::vector<place_index>{1});
    CHECK(b.rows.take(2, age, row));
    CHECK(row.place == 2);
    CHECK(b.counts(0).early_expired == 1);
    b.keep(1, 3, 0, 3);
    CHECK(b.keep(1, 4, age, 4) == arrival::early); // makes room for itself
    CHECK(b.returned() == std::vector<place_index>{3});
    CHECK(b.counts(1).early_expired == 1);
    CHECK(b.counts(1).early_evicted == 0);
}

TEST_CASE("early rows: one of an id, and none of a request that has ended") {
    bench b;
    CHECK(b.keep(0, 5, 0, 1) == arrival::early);
    CHECK(b.keep(0, 5, 0, 2) == arrival::duplicate);
    CHECK(b.keep(1, 5, 0, 3) == arrival::early);
    CHECK(b.counts(0).duplicate == 1);
    CHECK(b.returned().empty()); // the caller of `keep` has the place of one that is not kept
    b.rows.ended(6);
    CHECK(b.keep(0, 6, 0, 4) == arrival::stale);
    for (std::uint64_t id = 1000; id < 1000 + early_rows::recent - 1; ++id) b.rows.ended(id);
    CHECK(b.keep(0, 6, 0, 4) == arrival::stale);
    b.rows.ended(2000); // the last that is remembered pushes out the first
    CHECK(b.keep(0, 6, 0, 4) == arrival::early);
    CHECK(b.counts(0).stale == 2);
}

TEST_CASE("early rows: no id that the frontend gives itself, no zero, and none where none are kept") {
    bench b;
    CHECK(b.rows.may_keep(1));
    CHECK(!b.rows.may_keep(0));
    CHECK(!b.rows.may_keep(slot_pool::sent_bit | 5));
    CHECK(!b.rows.may_keep(~std::uint64_t{0}));
    table_roster roster(1, 4, 2);
    early_rows none(roster, 0);
    CHECK(!none.may_keep(1));
    early_row row;
    CHECK(!none.take(1, 0, row));
    none.lost(1, 0); // has no memory, and needs none
    CHECK(!none.next_returned(row));
}

TEST_CASE("early rows: of a peer that is lost none is left, and the other replica's stay") {
    bench b(1, 2);
    b.keep(0, 1, 0, 1);
    b.keep(0, 2, 900, 2);
    b.keep(1, 1, 900, 3);
    b.rows.lost(0, age);
    CHECK(b.returned() == std::vector<place_index>{1, 2});
    CHECK(b.counts(0).early_expired == 1); // the first was too old by then
    early_row row;
    CHECK(b.rows.take(1, age, row));
    CHECK(row.place == 3);
    CHECK(!b.rows.take(2, age, row));
}

TEST_CASE("early rows: taken is answered, or its place is given back") {
    bench b;
    b.keep(0, 1, 0, 1);
    b.keep(0, 2, 0, 2);
    early_row row;
    REQUIRE(b.rows.take(1, 1, row));
    b.rows.taken(row, true);
    REQUIRE(b.rows.take(2, 1, row));
    b.rows.taken(row, false);
    CHECK(b.returned() == std::vector<place_index>{2});
    CHECK(b.counts(0).early_answered == 1);
}

TEST_CASE("early rows: the roster grows, and what is kept stays") {
    bench b(1);
    b.keep(0, 1, 0, 1);
    b.roster.add();
    b.rows.grow();
    CHECK(b.keep(1, 2, 0, 2) == arrival::early);
    early_row row;
    CHECK(b.rows.take(1, 1, row));
    CHECK(b.rows.take(2, 1, row));
    CHECK(row.peer == 1);
}

} // namespace ensemble_early_rows_test
