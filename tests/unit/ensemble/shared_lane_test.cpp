// herring: tests of ensemble/shared_lane.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/shared_lane.hpp"

#include "sanitizers.hpp"
#include "shared_lane_pair.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ensemble_shared_lane_test {

using herring::decline;
using herring::errc;
using herring::detail::descriptor;
using herring::detail::ensembles::place_index;
using herring::detail::ensembles::ring_cell;
using herring::detail::ensembles::ring_message;
using herring::detail::ensembles::ring_reader;
using herring::detail::ensembles::ring_writer;
using herring::detail::ensembles::row_region;
using herring::detail::ensembles::shared_answer;
using herring::detail::ensembles::shared_ask;
using herring::detail::ensembles::shared_lane;
using herring::detail::ensembles::shared_lane_frontend;
using herring::detail::ensembles::shared_lane_member;
using herring::detail::ensembles::sleep_flag;
using herring::detail::ensembles::spare_places;
using herring::detail::ensembles::wake_up_socket;
using shared_lane_pair::answers;
using shared_lane_pair::asks;
using shared_lane_pair::filled;
using shared_lane_pair::pair;

bool readable(int file, int milliseconds = 0) {
    pollfd one{file, POLLIN, 0};
    return ::poll(&one, 1, milliseconds) == 1;
}

TEST_CASE("shared_lane: a request is read where it lies, and its row too") {
    pair p;
    asks at_member;
    answers at_frontend;
    CHECK(p.member->poll(at_member));
    CHECK(p.frontend->poll(at_frontend));
    REQUIRE(p.ask(2, 70, 200));
    CHECK(p.member->poll(at_member));
    REQUIRE(at_member.all.size() == 1);
    CHECK(at_member.all[0].id == 70);
    CHECK(at_member.all[0].remaining_us == 1000);
    CHECK(at_member.all[0].request.size() == 200);
    CHECK(filled(at_member.all[0].request, 70));
    CHECK(p.member->holds(at_member.all[0].place));

    CHECK(p.send(at_member.all[0], 300));
    CHECK(p.frontend->poll(at_frontend));
    REQUIRE(at_frontend.all.size() == 1);
    CHECK(at_frontend.all[0].id == 70);
    CHECK(at_frontend.all[0].is_row);
    CHECK(at_frontend.all[0].row.size() == 300);
    CHECK(filled(at_frontend.all[0].row, 70));
    CHECK(p.frontend->row(at_frontend.all[0].place).data() == at_frontend.all[0].row.data());
    CHECK_FALSE(p.member->send(70, at_member.all[0].place, 8)); // once only
}

TEST_CASE("shared_lane: answers come in any order, rows and others") {
    pair p;
    asks at_member;
    answers at_frontend;
    for (std::uint32_t slot = 0; slot < 4; ++slot) REQUIRE(p.ask(slot, 10 + slot));
    CHECK_FALSE(p.frontend->ask(3, 13, 1, {})); // it has four unanswered
    CHECK(p.member->poll(at_member));
    REQUIRE(at_member.all.size() == 4);
    CHECK(p.send(at_member.all[3]));
    CHECK(p.member->decline(11, at_member.all[1].place, decline::overloaded));
    CHECK(p.send(at_member.all[0]));
    CHECK(p.frontend->poll(at_frontend));
    REQUIRE(at_frontend.all.size() == 3);
    CHECK(at_frontend.all[0].id == 13);
    CHECK(at_frontend.all[1].id == 11);
    CHECK_FALSE(at_frontend.all[1].is_row);
    CHECK(at_frontend.all[1].reason == decline::overloaded);
    CHECK(at_frontend.all[2].id == 10);

    CHECK(p.ask(1, 21)); // the place of the one that was declined
    CHECK_FALSE(p.frontend->ask(3, 13, 1, {}));
    p.frontend->release(at_frontend.all[0].place);
    p.frontend->release(at_frontend.all[0].place); // nothing
    p.frontend->release(99);
    CHECK(p.ask(3, 22));
    CHECK_FALSE(p.ask(3, 23));
}

TEST_CASE("shared_lane: the place that was given back last is used first") {
    pair p;
    asks at_member;
    answers at_frontend;
    for (std::uint64_t id = 1; id < 100; ++id) {
        REQUIRE(p.ask(0, id));
        CHECK(p.member->poll(at_member));
        CHECK(p.send(at_member.all.back()));
        CHECK(p.frontend->poll(at_frontend));
        CHECK(at_frontend.all.back().id == id);
        CHECK(at_frontend.all.back().place == 0);
        CHECK(filled(at_frontend.all.back().row, id));
        p.frontend->release(0);
    }
}

TEST_CASE("shared_lane: a member can tell that a slot has its next request, and what it sends then is of the "
          "old one") {
    pair p;
    asks at_member;
    answers at_frontend;
    REQUIRE(p.ask(0, 5));
    REQUIRE(p.ask(1, 6));
    CHECK(p.member->poll(at_member));
    p.frontend->detach(0);
    (void)p.region.slot(0);
    CHECK_FALSE(p.member->holds(at_member.all[0].place));
    CHECK(p.member->holds(at_member.all[1].place));
    REQUIRE(p.ask(0, 7));
    CHECK_FALSE(p.member->holds(at_member.all[0].place));
    CHECK(p.send(at_member.all[0]));
    CHECK(p.frontend->poll(at_frontend));
    CHECK(at_frontend.all.at(0).id == 5);

    // One that is over before the member has seen it is declined for it.
    REQUIRE(p.ask(2, 8));
    (void)p.region.slot(2);
    at_member.all.clear();
    CHECK(p.member->poll(at_member));
    REQUIRE(at_member.all.size() == 1);
    CHECK(at_member.all[0].id == 7);
    CHECK(p.frontend->poll(at_frontend));
    CHECK(at_frontend.all.at(1).id == 8);
    CHECK(at_frontend.all.at(1).reason == decline::expired);
}

TEST_CASE("shared_lane: a member sends rows that nobody asked for, as many as were read and eight") {
    pair p;
    answers at_frontend;
    std::array<place_index, spare_places> places{};
    place_index more = 0;
    for (int round = 0; round < 5; ++round) {
        for (place_index& place : places) REQUIRE(p.member->take(place));
        CHECK_FALSE(p.member->take(more));
        std::uint64_t id = 100;
        for (place_index const place : places) {
            std::memset(p.member->row(place).data(), static_cast<int>(id & 127), 50);
            CHECK(p.member->send(id++, place, 50));
        }
        CHECK_FALSE(p.member->take(more)); // not read yet
        at_frontend.all.clear();
        CHECK(p.frontend->poll(at_frontend));
        REQUIRE(at_frontend.all.size() == spare_places);
        for (auto const& each : at_frontend.all) CHECK(filled(each.row, each.id));
        CHECK_FALSE(p.member->take(more));
        p.frontend->release(at_frontend.all[2].place);
        CHECK(p.member->take(more));
        CHECK(more == at_frontend.all[2].place);
        CHECK(p.member->decline(1, more, decline::unspecified)); // it is not sent after all
        for (auto const& each : at_frontend.all) p.frontend->release(each.place);
    }
}

TEST_CASE("shared_lane: a request or a row that is too long is not taken") {
    pair p;
    std::vector<std::byte> const request(257);
    CHECK_FALSE(p.frontend->ask(0, 1, 1, request));
    asks at_member;
    REQUIRE(p.ask(0, 1));
    CHECK(p.member->poll(at_member));
    CHECK_FALSE(p.member->send(1, at_member.all[0].place, 513));
    CHECK_FALSE(p.member->send(2, at_member.all[0].place, 8));
    CHECK_FALSE(p.member->send(1, at_member.all[0].place + 1, 8));
    CHECK_FALSE(p.member->send(1, 1000, 8));
    CHECK(p.member->send(1, at_member.all[0].place, 512));
}

TEST_CASE("shared_lane: a new incarnation begins with nothing of the one before") {
    pair p;
    asks at_member;
    answers at_frontend;
    for (std::uint64_t incarnation = 0; incarnation < 6; ++incarnation) {
        for (std::uint32_t i = 0; i <= incarnation % 4; ++i) REQUIRE(p.ask(i, 10 * incarnation + i));
        at_member.all.clear();
        CHECK(p.member->poll(at_member));
        CHECK(at_member.all.size() == incarnation % 4 + 1);
        CHECK(p.frontend->try_sleep());
        place_index spare = 0;
        CHECK(p.member->take(spare));
        CHECK(p.member->send(at_member.all[0].id, at_member.all[0].place, 4));

        auto const zombie = std::make_unique<shared_lane_member>(std::move(*p.member));
        p.connect();
        at_member.all.clear();
        at_frontend.all.clear();
        CHECK(p.member->poll(at_member));
        CHECK(p.frontend->poll(at_frontend));
        CHECK(at_member.all.empty());
        CHECK(at_frontend.all.empty());
        // The old one reads nothing that is meant for the new one, and is not heard.
        REQUIRE(p.ask(0, 1000));
        (void)zombie->poll(at_member);
        CHECK(at_member.all.empty());
        (void)zombie->send(1000, 0, 4);
        CHECK(p.frontend->poll(at_frontend));
        CHECK(at_frontend.all.empty());
        CHECK(p.member->poll(at_member));
        CHECK(at_member.all.size() == 1);
        CHECK(p.member->decline(1000, at_member.all[0].place, decline::stopping));
        CHECK(p.frontend->poll(at_frontend));
        CHECK(at_frontend.all.size() == 1);
    }
}

TEST_CASE("shared_lane: a spare row of an earlier incarnation, released late, is not one of the next") {
    pair p;
    answers at_frontend;
    place_index place = 0;
    REQUIRE(p.member->take(place));
    CHECK(p.member->send(1, place, 8));
    CHECK(p.frontend->poll(at_frontend));
    shared_lane_frontend before(std::move(*p.frontend));
    p.connect();
    before.release(at_frontend.all.at(0).place);
    for (int round = 0; round < 3; ++round) {
        place_index again = 0;
        REQUIRE(p.member->take(again));
        CHECK(again == place);
        CHECK(p.member->send(2, again, 8));
        CHECK(p.frontend->poll(at_frontend));
        p.frontend->release(again);
    }
}

// Sleep.

TEST_CASE("shared_lane: the bell is rung only for an end that says that it sleeps") {
    pair p;
    asks at_member;
    answers at_frontend;
    REQUIRE(p.ask(0, 1));
    CHECK_FALSE(readable(p.member->descriptor()));
    CHECK_FALSE(p.member->try_sleep()); // there is something to do
    CHECK(p.member->poll(at_member));
    CHECK(p.member->try_sleep());
    CHECK_FALSE(readable(p.member->descriptor()));
    REQUIRE(p.ask(1, 2));
    REQUIRE(p.ask(2, 3));
    CHECK(readable(p.member->descriptor()));
    p.member->awake();
    CHECK(p.member->poll(at_member));
    CHECK(at_member.all.size() == 3);
    CHECK_FALSE(readable(p.member->descriptor()));

    CHECK(p.frontend->try_sleep());
    CHECK(p.send(at_member.all[0]));
    CHECK(readable(p.frontend->descriptor()));
    CHECK(p.frontend->poll(at_frontend));      // which ends the sleep
    CHECK(readable(p.frontend->descriptor())); // nobody has said that it is
    p.frontend->rung();
    CHECK(p.frontend->poll(at_frontend));
    CHECK_FALSE(readable(p.frontend->descriptor()));
    CHECK(p.send(at_member.all[1]));
    CHECK_FALSE(readable(p.frontend->descriptor()));
}

TEST_CASE("shared_lane: an end that is gone is found by the other, after all that it has sent") {
    pair p;
    asks at_member;
    answers at_frontend;
    REQUIRE(p.ask(0, 1));
    CHECK(p.member->poll(at_member));
    CHECK(p.frontend->try_sleep());
    CHECK(p.send(at_member.all[0]));
    p.member.reset();
    CHECK(readable(p.frontend->descriptor()));
    p.frontend->rung();
    CHECK_FALSE(p.frontend->poll(at_frontend));
    CHECK(p.frontend->error() == "it has closed its end of the shared memory");
    REQUIRE(at_frontend.all.size() == 1);
    CHECK(filled(at_frontend.all[0].row, 1));
    CHECK_FALSE(p.ask(1, 2));
    CHECK_FALSE(p.frontend->try_sleep());

    p.connect();
    at_member.all.clear();
    CHECK(p.member->try_sleep());
    p.frontend.reset();
    CHECK(readable(p.member->descriptor()));
    CHECK_FALSE(p.member->poll(at_member));
    CHECK(p.member->error() == "it has closed its end of the shared memory");
}

/// A page that cannot be read until somebody has tried to; what was true then.
struct watched_page {
    void* page;
    ring_cell const* cell;
    std::uint64_t at_first_read = 0; // the cell's sequence
    struct ::sigaction before {};

    explicit watched_page(ring_cell const& of)
        : page(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), cell(&of) {
        current() = this;
        struct ::sigaction catches {};
        catches.sa_handler = [](int) {
            current()->at_first_read = current()->cell->sequence;
            ::mprotect(current()->page, 4096, PROT_READ | PROT_WRITE);
        };
        ::sigaction(SIGSEGV, &catches, &before);
    }
    ~watched_page() {
        ::sigaction(SIGSEGV, &before, nullptr);
        ::munmap(page, 4096);
    }
    static watched_page*& current() {
        static watched_page* one = nullptr;
        return one;
    }
};

TEST_CASE("shared_lane: the other end's flag is looked at after the message is published") {
    struct memory {
        std::array<ring_cell, 2> out{}, in{};
        sleep_flag mine{};
    };
    auto const m = std::make_unique<memory>();
    watched_page const page(m->out[0]);
    auto& others = *static_cast<sleep_flag*>(page.page);
    others.epoch = 1; // it sleeps
    shared_lane_pair::bells both;
    shared_lane lane(ring_writer(m->out.data(), 2, 40), ring_reader(m->in.data(), 2, 40), m->mine, others,
                     wake_up_socket(std::move(both.frontend)));
    REQUIRE(::mprotect(page.page, 4096, PROT_NONE) == 0);
    CHECK(lane.write({1, 2, 3, 4}));
    CHECK(page.at_first_read == 41);
    CHECK(readable(both.member.get()));
}

/// Waits for the descriptor. False: there is a message, and nobody has rung for it.
template <class Lane, class Sink> bool wait(Lane& lane, Sink& sink) {
    for (int tries = 0; tries < 12; ++tries) {
        if (readable(lane.descriptor(), 5000)) return true;
        std::size_t const before = sink.all.size();
        (void)lane.poll(sink);
        if (sink.all.size() != before) return false;
        if (!lane.try_sleep()) return true;
    }
    return false;
}

/// Answers `rounds` requests, asleep between them. False: it was not woken.
template <class Member> bool answer_asleep(Member& member, std::uint64_t rounds) {
    asks at_member;
    at_member.all.reserve(8);
    for (std::uint64_t done = 0; done < rounds;) {
        at_member.all.clear();
        if (!member.poll(at_member)) return false;
        for (auto const& job : at_member.all) {
            // A varying time, so that the other end is on its way to its sleep, or asleep, or awake.
            for (std::uint64_t i = 0; i < done % 600; ++i)
                std::atomic_signal_fence(std::memory_order_seq_cst);
            std::memset(member.row(job.place).data(), static_cast<int>(job.id & 127), 64);
            if (!filled(job.request, job.id) || !member.send(job.id, job.place, 64)) return false;
            ++done;
        }
        if (done < rounds && at_member.all.empty() && member.try_sleep()) {
            if (!wait(member, at_member)) return false;
            member.awake();
        }
    }
    return true;
}

/// As many requests, one after another; how many answers were right.
std::uint64_t ask_asleep(pair& p, std::uint64_t rounds) {
    answers at_frontend;
    at_frontend.all.reserve(8);
    std::uint64_t right = 0;
    for (std::uint64_t id = 1; id <= rounds; ++id) {
        if (!p.ask(static_cast<std::uint32_t>(id % 4), id)) break;
        at_frontend.all.clear();
        while (at_frontend.all.empty()) {
            for (std::uint64_t i = 0; i < id % 401; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
            if (p.frontend->try_sleep()) {
                if (!wait(*p.frontend, at_frontend)) return right;
                p.frontend->awake();
            }
            if (!p.frontend->poll(at_frontend) && at_frontend.all.empty()) return right; // else it has left
        }
        auto const& got = at_frontend.all[0];
        right += at_frontend.all.size() == 1 && got.id == id && filled(got.row, id);
        p.frontend->release(got.place);
    }
    return right;
}

constexpr std::uint64_t asleep_rounds = HERRING_TEST_ASAN || HERRING_TEST_TSAN ? 5000 : 100000;

TEST_CASE("shared_lane: two threads that sleep before each message never miss one") {
    pair p;
    bool answered = false;
    std::thread member([&] { answered = answer_asleep(*p.member, asleep_rounds); });
    CHECK(ask_asleep(p, asleep_rounds) == asleep_rounds);
    p.frontend.reset(); // ends the other, if it waits
    member.join();
    CHECK(answered);
}

#if !HERRING_TEST_TSAN // which does not follow forks

/// Runs `body` in a process that has nothing but the member's end; how it ended.
template <class Body> int in_child(pair& p, Body&& body) {
    pid_t const child = ::fork();
    if (child == 0) {
        p.frontend.reset();
        ::_exit(body());
    }
    p.member.reset();
    p.member_bell = descriptor();
    return child;
}
int ended(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

TEST_CASE("shared_lane: two processes that sleep before each message never miss one") {
    pair p;
    constexpr std::uint64_t rounds = asleep_rounds / 5;
    pid_t const child = in_child(p, [&] { return answer_asleep(*p.member, rounds) ? 0 : 1; });
    CHECK(ask_asleep(p, rounds) == rounds);
    p.frontend.reset();
    CHECK(ended(child) == 0);
}

TEST_CASE("shared_lane: a member that is killed while it answers has answered whole or not at all") {
    // What `send` does, in its steps; it is killed before step `last`.
    for (int last = 0; last <= 5; ++last) {
        pair p;
        p.connect_frontend();
        REQUIRE(p.ask(0, 9));
        CHECK(p.frontend->try_sleep());
        pid_t const child = in_child(p, [&] {
            row_region mine(std::move(*p.of_member));
            ring_writer writer(mine.answers(), mine.layout().cells(), mine.origin());
            int step = 0;
            auto const next = [&] {
                if (step++ == last) ::raise(SIGKILL);
            };
            next();
            std::memset(mine.row(3).data(), 9, 20);
            next();
            std::memset(mine.row(3).data(), 9, 40);
            next();
            writer.fill(shared_answer{9, 40, 0, true, 0}.message());
            std::memcpy(mine.row(0).data(), mine.row(3).data(), 40);
            next();
            writer.publish();
            next();
            std::byte const packet{1};
            (void)!::send(p.member_bell.get(), &packet, 1, MSG_NOSIGNAL);
            next();
            return 0;
        });
        int const status = ended(child);
        CHECK(WIFSIGNALED(status));
        answers at_frontend;
        CHECK(readable(p.frontend->descriptor()));
        p.frontend->rung();
        CHECK_FALSE(p.frontend->poll(at_frontend)); // it is gone
        CHECK(at_frontend.all.size() == (last >= 4 ? 1 : 0));
        for (auto const& each : at_frontend.all) {
            CHECK(each.id == 9);
            CHECK(each.row.size() == 40);
            CHECK(filled(each.row, 9));
        }
    }
}

TEST_CASE(
    "shared_lane: a frontend is served by a member that is killed anywhere, and by its next incarnation") {
    for (int kills = 0; kills < 10; ++kills) {
        pair p;
        pid_t const child = in_child(p, [&] { return answer_asleep(*p.member, ~std::uint64_t{0}) ? 0 : 1; });
        answers at_frontend;
        std::uint64_t id = 0, wrong = 0;
        bool alive = true;
        while (alive) {
            if (id == 20u + static_cast<unsigned>(kills) * 7) ::kill(child, SIGKILL);
            ++id;
            for (std::uint32_t slot = 0; slot < 4; ++slot) p.ask(slot, id * 4 + slot, 100);
            if (p.frontend->try_sleep()) alive = readable(p.frontend->descriptor(), 60000);
            p.frontend->rung();
            at_frontend.all.clear();
            alive = p.frontend->poll(at_frontend) && alive;
            for (auto const& each : at_frontend.all) {
                wrong += each.is_row && !filled(each.row, each.id);
                p.frontend->release(each.place);
            }
        }
        CHECK(ended(child) != 0);
        CHECK(wrong == 0);
        CHECK(p.frontend->error() == "it has closed its end of the shared memory");
        p.connect();
        REQUIRE(p.ask(0, 1));
        asks at_member;
        CHECK(p.member->poll(at_member));
        REQUIRE(at_member.all.size() == 1);
        CHECK(p.send(at_member.all[0]));
        at_frontend.all.clear();
        CHECK(p.frontend->poll(at_frontend));
        CHECK(at_frontend.all.size() == 1);
    }
}

#endif

// An end that does not keep to the rules.

/// The member's end by hand.
struct hostile_member {
    pair p;
    ring_writer writer;
    answers got{};

    hostile_member() {
        p.connect_frontend();
        writer = ring_writer(p.of_member->answers(), p.of_member->layout().cells(), p.of_member->origin());
        REQUIRE(p.ask(0, 50));
        REQUIRE(p.ask(1, 51));
    }
    bool publish(ring_message const& message) {
        writer.fill(message);
        writer.publish();
        return p.frontend->poll(got);
    }
    void ring() {
        std::byte const packet{1};
        (void)!::send(p.member_bell.get(), &packet, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
};

TEST_CASE("shared_lane: a frontend breaks a lane over which it was answered what it did not ask") {
    auto const error_of = [](ring_message const& message) {
        hostile_member h;
        CHECK_FALSE(h.publish(message));
        CHECK(h.got.all.empty());
        CHECK_FALSE(h.p.ask(3, 60));
        CHECK_FALSE(h.p.frontend->poll(h.got)); // and it stays so
        return std::string(h.p.frontend->error());
    };
    constexpr std::uint64_t most = ~std::uint64_t{0};
    CHECK(error_of({50, 8, 12, most}) == "it sent a row of place 12 where there are 12");
    CHECK(error_of({50, 8, most, most}) == "it sent a row of place 4294967295 where there are 12");
    CHECK(error_of({50, 8, 0xffffffff00000000, most}).find("of place 4294967295") != std::string::npos);
    CHECK(error_of({50, 513, 0, most}) == "it sent a row of 513 bytes where at most 512 are due");
    CHECK(error_of({50, most, 0, most}).find("bytes where at most 512 are due") != std::string::npos);
    CHECK(error_of({51, 8, 0, most}) == "it answered a request that it does not have, 51");
    CHECK(error_of({50, 8, 2, most}).find("that it does not have, 50") != std::string::npos);
    CHECK(error_of({50, 8, 2, 1}).find("that it does not have, 50") != std::string::npos);
    CHECK(error_of({50, 8, 5, 1}).find("that it does not have, 50") != std::string::npos); // a spare place

    hostile_member h;
    CHECK(h.publish({50, 8, 0, most}));
    CHECK(h.publish({7, 8, 4, most}));
    CHECK_FALSE(h.publish({50, 8, 0, most})); // twice
    hostile_member again;
    CHECK(again.publish({7, 8, 4, most}));
    CHECK_FALSE(again.publish({7, 8, 4, most})); // a spare place that was not given back
    hostile_member reason;
    CHECK(reason.publish({50, 8, 0, 1000}));
    CHECK(reason.got.all.at(0).reason == decline::unspecified);
}

TEST_CASE("shared_lane: one that publishes without end does not keep a poll from its end") {
    hostile_member h;
    // Each spare row is released at once, and the next one is in the ring before the poll looks.
    struct endless {
        hostile_member& h;
        std::uint64_t rows = 0;
        void row(std::uint64_t, place_index place, std::span<std::byte const>) noexcept {
            h.p.frontend->release(place);
            h.writer.fill({1, 8, 4, ~std::uint64_t{0}});
            h.writer.publish();
            ++rows;
        }
        void declined(std::uint64_t, decline) noexcept {}
    } sink{h};
    h.writer.fill({1, 8, 4, ~std::uint64_t{0}});
    h.writer.publish();
    CHECK(h.p.frontend->poll(sink));
    CHECK(sink.rows == 16);
    CHECK(h.p.frontend->poll(sink));
    CHECK(sink.rows == 32);
}

TEST_CASE("shared_lane: one that rings without a message is dropped before long") {
    hostile_member h;
    int polls = 0;
    for (bool good = true; good; ++polls) {
        REQUIRE(polls < 100);
        for (int i = 0; i < 5; ++i) h.ring();
        if (!h.p.frontend->try_sleep()) break;
        CHECK(readable(h.p.frontend->descriptor()));
        h.p.frontend->rung();
        good = h.p.frontend->poll(h.got);
    }
    CHECK(h.p.frontend->error() == "it rings its bell without a message");
    CHECK(polls <= 4);
}

TEST_CASE("shared_lane: a member breaks a lane over which no frontend asks so") {
    auto const error_of = [](shared_ask const& ask) {
        pair p;
        ring_writer writer(p.region.asks(1), p.requests.cells(), 0);
        // The frontend's own writer has the origin; the test takes it from the member's memory.
        p.connect_frontend();
        writer = ring_writer(p.region.asks(1), p.requests.cells(), p.of_member->origin());
        p.connect_member();
        writer.fill(ask.message());
        writer.publish();
        asks got;
        CHECK_FALSE(p.member->poll(got));
        CHECK(got.all.empty());
        return std::string(p.member->error());
    };
    CHECK(error_of({.id = 1, .place = 4}) == "it sent a request for place 4 that is not free");
    CHECK(error_of({.id = 1, .slot = 4}).find("that is not free") != std::string::npos);
    CHECK(error_of({.id = 1, .place = ~0u}).find("that is not free") != std::string::npos);
    CHECK(error_of({.id = 0, .bytes = 257}) == "it sent a request of 257 bytes where at most 256 are due");
    CHECK(error_of({.id = 0, .bytes = ~std::uint64_t{0}}).find("at most 256") != std::string::npos);
}

TEST_CASE(
    "shared_lane: a peer for whom there is no memory is an error, and so is memory that is not as agreed") {
    pair p;
    auto const code_of = [&](std::uint32_t peer, std::uint64_t credits, std::uint64_t row_bytes) {
        shared_lane_pair::bells both;
        row_region const memory({peer, credits, row_bytes});
        try {
            shared_lane_frontend const lane(
                p.region, shared_lane_pair::ends(std::move(both.frontend), memory.descriptor()), peer, 4,
                512);
        } catch (herring::error const& e) {
            return e.code();
        }
        return errc::ok;
    };
    CHECK(code_of(1, 4, 512) == errc::ok);
    CHECK(code_of(3, 4, 512) == errc::bad_argument);
    CHECK(code_of(1, 4, 513) == errc::protocol);
    CHECK(code_of(1, 60, 512) == errc::protocol);
    CHECK_THROWS_AS(shared_lane_frontend(p.region, {}, 1, 4, 512), herring::error);
    CHECK_THROWS_AS(shared_lane_member(row_region({1, 4, 512}), {}), herring::error);
}

} // namespace ensemble_shared_lane_test
