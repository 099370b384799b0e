// herring: tests of control/rendezvous/connection_set.hpp: entries of connections, their keys, and when they expire.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/connection_set.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace herring;
using detail::rendezvous::connection;
using detail::rendezvous::connection_set;
using detail::rendezvous::pending_time;

namespace {
/// The connections of one process, whose other ends are here.
struct connections_of {
    connections_of(int rank, int ranks) : all((thread.open("join", rank), thread), rank, ranks) {}
    ~connections_of() {
        for (int const each : others) ::close(each);
    }
    connection& open() {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        others.push_back(ends[1]);
        return all.open(ends[0], "here", EPOLLIN);
    }
    detail::event_thread thread;
    std::vector<int> others;
    connection_set all;
};
} // namespace

TEST_CASE("connection_set: a key names one connection; an entry that is used again has another key") {
    connections_of of(0, 4);
    std::vector<connection*> opened;
    std::vector<std::uint64_t> keys;
    for (int i = 0; i < 100; ++i) {
        opened.push_back(&of.open());
        keys.push_back(of.all.key_of(*opened.back()));
    }
    for (std::size_t i = 0; i < opened.size(); ++i) CHECK(of.all.of_key(keys[i]) == opened[i]);
    of.all.places()[2] = opened[7];
    opened[7]->rank = 2;
    for (std::size_t const i : {7u, 50u}) {
        of.all.close(*opened[i]);
        CHECK(of.all.of_key(keys[i]) == nullptr);
        of.all.close(*opened[i]); // once
    }
    CHECK(of.all.places()[2] == nullptr);
    connection& again = of.open();
    CHECK((&again == opened[7] || &again == opened[50]));
    CHECK(of.all.of_key(of.all.key_of(again)) == &again);
    for (std::size_t const i : {7u, 50u}) CHECK(of.all.of_key(keys[i]) == nullptr);
    CHECK(of.all.of_key(~std::uint64_t{0} >> 1) == nullptr);
    (void)of.open();
    CHECK(of.all.all().size() == 100);
}

TEST_CASE("connection_set: connections expire at their times, and are not looked at before") {
    connections_of of(0, 4);
    connection &first = of.open(), &second = of.open(), &third = of.open();
    time_point const now = third.heard;
    std::vector<connection*> expired;
    auto const look = [&](clock::duration after) {
        expired.clear();
        return of.all.expire(now + after, [&](connection& c) {
            expired.push_back(&c);
            of.all.close(c);
        });
    };
    using those = std::vector<connection*>;
    CHECK(look({}) <= first.until);
    of.all.close_at(second, now + std::chrono::milliseconds(10));
    CHECK(look(std::chrono::milliseconds(9)) == second.until);
    CHECK(expired == those{});
    third.until = time_point::max(); // it has joined
    CHECK(look(std::chrono::milliseconds(10)) == first.until);
    CHECK(expired == those{&second});
    CHECK(look(pending_time) == time_point::max());
    CHECK(expired == those{&first});
    CHECK(of.open().open());
    CHECK(look({}) <= now + 2 * pending_time);
    CHECK(look(2 * pending_time) == time_point::max());
    CHECK(expired.size() == 1);
}

TEST_CASE("connection_set: only rank 0 has a place for each rank") {
    CHECK(connections_of(0, 1000).all.places().size() == 1000);
    CHECK(connections_of(7, 1000).all.places().size() == 1);
}
