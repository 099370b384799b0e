// herring: tests of ensemble/tcp_lane.hpp: both ends with each other, and each with one that speaks by hand.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/tcp_lane.hpp"

#include "doctest/doctest.h"

#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace ensemble_tcp_lane_test {

using namespace herring::detail::ensembles;
using herring::decline;
using herring::detail::descriptor;

enum class kind { local, tcp };

struct two_sockets {
    descriptor one, other;

    explicit two_sockets(kind of, bool small = false) {
        if (of == kind::local) {
            int both[2];
            REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
            one = descriptor(both[0]);
            other = descriptor(both[1]);
        } else {
            descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_in here{};
            here.sin_family = AF_INET;
            here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            socklen_t size = sizeof here;
            auto* const address = reinterpret_cast<sockaddr*>(&here);
            REQUIRE(::bind(listener.get(), address, size) == 0);
            REQUIRE(::listen(listener.get(), 1) == 0);
            REQUIRE(::getsockname(listener.get(), address, &size) == 0);
            one = descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            REQUIRE(::connect(one.get(), address, size) == 0);
            other = descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            REQUIRE(::fcntl(one.get(), F_SETFL, O_NONBLOCK) == 0);
        }
        if (!small) return;
        int const least = 1; // the kernel makes its minimum of it
        for (int const socket : {one.get(), other.get()})
            ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    }
};

std::vector<std::byte> payload(std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> out(bytes);
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
    return out;
}
std::vector<std::byte> copy_of(std::span<std::byte const> bytes) { return {bytes.begin(), bytes.end()}; }

/// What a frontend's end reports.
struct answers {
    struct one {
        std::uint64_t id;
        place_index place;
        std::vector<std::byte> row;
    };
    struct no {
        std::uint64_t id;
        decline reason;
    };
    std::vector<one> rows;
    std::vector<no> declines;

    void row(std::uint64_t id, place_index place, std::span<std::byte const> bytes) {
        rows.push_back({id, place, copy_of(bytes)});
    }
    void declined(std::uint64_t id, decline reason) { declines.push_back({id, reason}); }
};

/// What a member's end reports.
struct asks {
    struct one {
        std::uint64_t id, remaining_us;
        std::span<std::byte const> request; // where it lies
        place_index place;
    };
    std::vector<one> all;
    void asked(std::uint64_t id, std::uint64_t remaining_us, std::span<std::byte const> request,
               place_index place) {
        all.push_back({id, remaining_us, request, place});
    }
};

constexpr lane_sizes sizes{.credits = 4, .request_bytes = 3000, .row_bytes = 5000};

struct both_ends {
    two_sockets sockets;
    tcp_lane_frontend front;
    tcp_lane_member member;
    answers got;
    asks jobs;

    explicit both_ends(kind of, lane_sizes const& s = sizes, bool small = false)
        : sockets(of, small), front(std::move(sockets.one), s), member(std::move(sockets.other), s) {}

    void poll() {
        REQUIRE(front.poll(got));
        REQUIRE(member.poll(jobs));
    }
    /// Until it holds; a test that would hang fails.
    template <class Holds> void until(Holds&& holds) {
        for (int rounds = 0; !holds(); ++rounds) {
            REQUIRE(rounds < 20000);
            pollfd both[2] = {{front.descriptor(), POLLIN, 0}, {member.descriptor(), POLLIN, 0}};
            if (front.wants_write()) both[0].events |= POLLOUT;
            if (member.wants_write()) both[1].events |= POLLOUT;
            ::poll(both, 2, 1);
            poll();
        }
    }
    void answer(asks::one const& job, std::vector<std::byte> const& row) {
        std::memcpy(member.row(job.place).data(), row.data(), row.size());
        REQUIRE(member.send(job.id, job.place, row.size()));
    }
};

TEST_CASE("ensemble tcp lane: requests arrive, rows come back, places are used again") {
    for (kind const of : {kind::local, kind::tcp})
        for (bool const small : {false, true}) {
            both_ends lane(of, sizes, small);
            std::uint64_t id = 0;
            for (int round = 0; round < 8; ++round) {
                std::vector<std::vector<std::byte>> requests;
                for (slot_index slot = 0; slot < 4; ++slot) {
                    requests.push_back(payload(slot == 1 ? 0 : 3000 - slot, id + slot));
                    REQUIRE(lane.front.ask(slot, id + slot, 1000 + slot, requests.back()));
                }
                lane.until([&] { return lane.jobs.all.size() == 4; });
                for (slot_index slot = 0; slot < 4; ++slot) {
                    auto const& job = lane.jobs.all[slot];
                    CHECK(job.id == id + slot);
                    CHECK(job.remaining_us == 1000 + slot);
                    CHECK(copy_of(job.request) == requests[slot]);
                    lane.front.detach(slot);
                }
                for (std::size_t const i : {2u, 0u, 3u}) // any order
                    lane.answer(lane.jobs.all[i], payload(5000 - i, lane.jobs.all[i].id * 3));
                REQUIRE(lane.member.decline(id + 1, lane.jobs.all[1].place, decline::bad_input));
                lane.until([&] { return lane.got.rows.size() == 3 && lane.got.declines.size() == 1; });
                for (auto const& row : lane.got.rows) {
                    std::size_t const i = static_cast<std::size_t>(row.id - id);
                    CHECK(row.row == payload(5000 - i, row.id * 3));
                    CHECK(copy_of(lane.front.row(row.place)) == row.row); // it stays
                }
                CHECK(lane.got.declines[0].id == id + 1);
                CHECK(lane.got.declines[0].reason == decline::bad_input);
                for (auto const& row : lane.got.rows) lane.front.release(row.place);
                lane.got = {};
                lane.jobs = {};
                id += 4;
            }
        }
}

TEST_CASE("ensemble tcp lane: large rows and requests, in sockets that take little at once") {
    constexpr lane_sizes large{.credits = 3, .request_bytes = 200000, .row_bytes = 300000};
    for (kind const of : {kind::local, kind::tcp}) {
        both_ends lane(of, large, true);
        std::vector<std::vector<std::byte>> requests;
        for (slot_index slot = 0; slot < 3; ++slot) {
            requests.push_back(payload(200000, slot));
            REQUIRE(lane.front.ask(slot, 10 + slot, 5, requests.back()));
        }
        lane.until([&] { return lane.jobs.all.size() == 3; });
        for (slot_index slot = 0; slot < 3; ++slot) {
            CHECK(copy_of(lane.jobs.all[slot].request) == requests[slot]);
            lane.answer(lane.jobs.all[slot], payload(300000, 7 + slot));
        }
        lane.until([&] { return lane.got.rows.size() == 3; });
        for (auto const& row : lane.got.rows) CHECK(row.row == payload(300000, row.id - 3));
    }
}

TEST_CASE("ensemble tcp lane: a request that goes away while it is sent arrives whole; one that has not "
          "begun is declined") {
    constexpr lane_sizes large{.credits = 3, .request_bytes = 4000000, .row_bytes = 100};
    both_ends lane(kind::tcp, large, true);
    auto first = payload(4000000, 1);
    auto second = payload(3000, 2), third = payload(3000, 3);
    REQUIRE(lane.front.ask(0, 1, 5, first)); // more than both sockets take
    REQUIRE(lane.front.ask(1, 2, 5, second));
    REQUIRE(lane.front.ask(2, 3, 5, third));
    CHECK(lane.front.wants_write());
    CHECK_FALSE(lane.front.ask(0, 4, 5, third)); // all credits wait
    lane.front.detach(0);
    lane.front.detach(1);
    std::memset(first.data(), 0xEE, first.size());
    std::memset(second.data(), 0xEE, second.size());
    lane.until([&] { return lane.jobs.all.size() == 2 && lane.got.declines.size() == 1; });
    CHECK(lane.jobs.all[0].id == 1);
    CHECK(copy_of(lane.jobs.all[0].request) == payload(4000000, 1));
    CHECK(lane.jobs.all[1].id == 3);
    CHECK(copy_of(lane.jobs.all[1].request) == third);
    CHECK(lane.got.declines[0].id == 2);
    CHECK(lane.got.declines[0].reason == decline::expired);
    CHECK_FALSE(lane.front.wants_write());
}

TEST_CASE(
    "ensemble tcp lane: rows that nobody asked for; without a free place they are dropped and declined") {
    both_ends lane(kind::local);
    auto const contribute = [&](std::uint64_t id) {
        place_index place = 0;
        REQUIRE(lane.member.take(place));
        auto const row = payload(100, id);
        std::memcpy(lane.member.row(place).data(), row.data(), row.size());
        REQUIRE(lane.member.send(id, place, row.size()));
    };
    for (std::uint64_t id = 1; id <= 14; ++id) { // twelve places, and they are not given back
        contribute(id);
        lane.poll();
    }
    lane.until([&] { return lane.got.rows.size() + lane.got.declines.size() == 14; });
    REQUIRE(lane.got.rows.size() == 12);
    CHECK(lane.got.declines[0].id == 13);
    CHECK(lane.got.declines[0].reason == decline::overloaded);
    for (auto const& row : lane.got.rows) {
        CHECK(copy_of(lane.front.row(row.place)) == payload(100, row.id));
        lane.front.release(row.place);
    }
    contribute(7);
    lane.until([&] { return lane.got.rows.size() == 13; });
    CHECK(lane.got.rows.back().row == payload(100, 7));
}

TEST_CASE(
    "ensemble tcp lane: a place for a row that is not sent after all is free again, and nothing is told") {
    both_ends lane(kind::local);
    place_index place = 0;
    for (int i = 0; i < 20; ++i) {
        REQUIRE(lane.member.take(place));
        CHECK(place >= sizes.credits);
        CHECK(lane.member.decline(1, place, decline::unspecified));
    }
    CHECK_FALSE(lane.member.wants_write());
    lane.poll();
    CHECK(lane.got.declines.empty());
}

TEST_CASE("ensemble tcp lane: a place goes with each request, so that its row always has one") {
    both_ends lane(kind::local);
    auto const request = payload(10, 1);
    for (slot_index slot = 0; slot < 4; ++slot) REQUIRE(lane.front.ask(slot, slot, 5, request));
    CHECK_FALSE(lane.front.ask(4, 4, 5, request));
    CHECK(lane.front.error().empty());
    lane.until([&] { return lane.jobs.all.size() == 4; });
    REQUIRE(lane.member.decline(3, lane.jobs.all[3].place, decline::overloaded));
    for (std::size_t i = 0; i < 3; ++i) lane.answer(lane.jobs.all[i], payload(5000, i));
    lane.until([&] { return lane.got.rows.size() == 3 && lane.got.declines.size() == 1; });
    REQUIRE(lane.front.ask(4, 4, 5, request));     // the place of the one that was declined
    CHECK_FALSE(lane.front.ask(5, 5, 5, request)); // the rows are not released
    lane.until([&] { return lane.jobs.all.size() == 5; });
    lane.answer(lane.jobs.all[4], payload(5000, 4));
    lane.until([&] { return lane.got.rows.size() == 4; });
    CHECK_FALSE(lane.front.ask(5, 5, 5, request));
    for (auto const& row : lane.got.rows) {
        CHECK(copy_of(lane.front.row(row.place)) == row.row);
        lane.front.release(row.place);
    }
    for (slot_index slot = 0; slot < 4; ++slot) REQUIRE(lane.front.ask(slot, slot, 5, request));
    CHECK_FALSE(lane.front.ask(4, 4, 5, request));
}

TEST_CASE("ensemble tcp lane: rows that came early take no place of a request's") {
    both_ends lane(kind::local);
    auto const request = payload(10, 1);
    for (std::uint64_t id = 1; id <= 4; ++id) {
        place_index place = 0;
        REQUIRE(lane.member.take(place));
        REQUIRE(lane.member.send(id, place, 10));
        lane.until([&] { return lane.got.rows.size() == id; });
        lane.front.keep(lane.got.rows.back().place);
    }
    for (slot_index slot = 0; slot < 4; ++slot) REQUIRE(lane.front.ask(slot, slot, 5, request));
    CHECK_FALSE(lane.front.ask(4, 4, 5, request));
    for (auto const& row : lane.got.rows) lane.front.release(row.place);
    CHECK_FALSE(lane.front.ask(4, 4, 5, request)); // nor do places that are free of them
    lane.until([&] { return lane.jobs.all.size() == 4; });
    for (auto const& job : lane.jobs.all) lane.answer(job, payload(5000, job.id));
    lane.until([&] { return lane.got.rows.size() == 8; });
    CHECK_FALSE(lane.front.ask(4, 4, 5, request)); // answers hold all places of requests
}

TEST_CASE(
    "ensemble tcp lane: a frontend that does not read holds up nobody's thread, and runs out of places") {
    constexpr lane_sizes large{.credits = 4, .request_bytes = 10, .row_bytes = 1000000};
    two_sockets sockets(kind::local, true);
    tcp_lane_member member(std::move(sockets.other), large);
    asks jobs;
    auto const send = [&](std::uint64_t id) {
        std::byte head[data_head_bytes];
        encode({.kind = data_kind::ask, .id = id, .remaining_us = 1}, head);
        REQUIRE(::send(sockets.one.get(), head, sizeof head, MSG_NOSIGNAL) == sizeof head);
    };
    for (std::uint64_t id = 0; id < 4; ++id) send(id);
    REQUIRE(member.poll(jobs));
    REQUIRE(jobs.all.size() == 4);
    for (auto const& job : jobs.all) CHECK(member.send(job.id, job.place, 1000000)); // returns at once
    place_index place = 0;
    for (std::uint32_t i = 0; i < tcp_lane_member::spare; ++i) {
        REQUIRE(member.take(place));
        CHECK(member.send(9, place, 1));
    }
    CHECK_FALSE(member.take(place));
    CHECK(member.wants_write());
    CHECK(member.poll(jobs));
    send(4); // one more than it has credits
    CHECK_FALSE(member.poll(jobs));
    CHECK(member.error() == "it sent more than 4 requests without an answer");
    CHECK_FALSE(member.send(0, jobs.all[0].place, 1));
}

/// One end, and what is told it by hand.
template <class End, class Sink>
std::string told(End& end, Sink& sink, int socket, std::span<std::byte const> bytes) {
    REQUIRE(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    CHECK_FALSE(end.poll(sink));
    CHECK_FALSE(end.poll(sink)); // and stays so
    return std::string(end.error());
}
std::vector<std::byte> head_bytes(data_head const& head) {
    std::vector<std::byte> bytes(data_head_bytes);
    encode(head, bytes.data());
    return bytes;
}

TEST_CASE("ensemble tcp lane: what is not due breaks a frontend's end, which says why") {
    two_sockets sockets(kind::local);
    tcp_lane_frontend front(std::move(sockets.one), sizes);
    answers got;
    auto const socket = sockets.other.get();
    CHECK(front.error().empty());
    SUBCASE("an ask") {
        CHECK(told(front, got, socket, head_bytes({.kind = data_kind::ask})) ==
              "it sent a message that is not due");
    }
    SUBCASE("a row that is too large") {
        CHECK(told(front, got, socket, head_bytes({.kind = data_kind::row, .length = 5001})) ==
              "it sent a row of 5001 bytes where at most 5000 are due");
    }
    SUBCASE("junk") {
        CHECK(told(front, got, socket, std::vector<std::byte>(40)) ==
              "it sent what is no message of an ensemble's data connection");
    }
    SUBCASE("its end, behind a row that still counts") {
        auto bytes = head_bytes({.kind = data_kind::row, .id = 3, .length = 10});
        bytes.resize(bytes.size() + 10);
        REQUIRE(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
        sockets.other = descriptor();
        for (int i = 0; i < 3 && front.error().empty(); ++i) (void)front.poll(got);
        CHECK(got.rows.size() == 1);
        CHECK(front.error() == "it has closed its data connection");
        CHECK_FALSE(front.ask(0, 1, 1, {}));
    }
}

TEST_CASE(
    "ensemble tcp lane: what was sent before a connection broke is read, also where sending fails first") {
    two_sockets sockets(kind::local);
    tcp_lane_frontend front(std::move(sockets.one), sizes);
    answers got;
    auto bytes = head_bytes({.kind = data_kind::row, .id = 3, .length = 10});
    bytes.resize(bytes.size() + 10);
    REQUIRE(::send(sockets.other.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == 42);
    sockets.other = descriptor();
    CHECK_FALSE(front.ask(0, 1, 1, {}));
    CHECK(front.error().substr(0, 21) == "sending to it failed:");
    CHECK_FALSE(front.poll(got));
    CHECK(got.rows.size() == 1);
}

TEST_CASE("ensemble tcp lane: a request that is larger than agreed is not sent") {
    both_ends lane(kind::local);
    CHECK_FALSE(lane.front.ask(0, 1, 1, payload(3001, 1)));
    CHECK(lane.front.error().empty());
    CHECK_FALSE(lane.front.wants_write());
}

TEST_CASE("ensemble tcp lane: what is not due breaks a member's end, which says why") {
    two_sockets sockets(kind::local);
    tcp_lane_member member(std::move(sockets.one), sizes);
    asks jobs;
    auto const socket = sockets.other.get();
    SUBCASE("a row") {
        CHECK(told(member, jobs, socket, head_bytes({.kind = data_kind::row})) ==
              "it sent a message that is not due");
    }
    SUBCASE("a decline") {
        CHECK(told(member, jobs, socket, head_bytes({.kind = data_kind::declined})) ==
              "it sent a message that is not due");
    }
    SUBCASE("a request that is too large") {
        CHECK(told(member, jobs, socket, head_bytes({.kind = data_kind::ask, .length = 3001})) ==
              "it sent a request of 3001 bytes where at most 3000 are due");
    }
    SUBCASE("junk") {
        CHECK(told(member, jobs, socket, std::vector<std::byte>(40, std::byte{0xFF})) ==
              "it sent what is no message of an ensemble's data connection");
    }
    CHECK(jobs.all.empty());
}

} // namespace ensemble_tcp_lane_test
