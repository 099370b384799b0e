// herring: an ensemble of one process: a frontend and its members by TCP and through shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

#include "herring/wire/codecs.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ensemble_test {

using namespace herring;
using namespace std::chrono_literals;

constexpr std::size_t elements = 100;
using voters = ensemble<float, combine::mean<space::value, weighting::as_given>, quorum::at_least<2>>;
static_assert(
    std::is_same_v<voters,
                   ensemble<float, quorum::at_least<2>, combine::mean<space::value, weighting::as_given>>>);

std::string const secret(64, 'a');

struct served {
    explicit served(std::string address, std::string name, lane way, float number)
        : me({.frontends = {std::move(address)},
              .name = std::move(name),
              .elements = elements,
              .request_bytes = 16,
              .secret = secret,
              .lanes = way}),
          thread([this, number] {
              while (auto job = me.next()) {
                  for (float& x : job.row()) x = number * float(job.input()[0]);
                  job.send();
              }
          }) {}
    ~served() {
        me.stop();
        thread.join();
    }
    voters::member me;
    std::thread thread;
};

void await_members(voters::frontend& front, std::size_t count) {
    for (std::size_t here = 0; here < count;) {
        here = 0;
        for (auto const& m : front.members()) here += m.admitted;
        std::this_thread::yield();
    }
}

void asks_and_combines(lane way) {
    voters::frontend front({.listen = "127.0.0.1:0",
                            .members = {"a", "b", "c"},
                            .elements = elements,
                            .request_bytes = 16,
                            .secret = secret,
                            .lanes = way});
    CHECK(!front.ready());
    CHECK(front.port() > 0);
    std::byte input[16] = {};
    CHECK(front.ask(input, 1s).outcome() == outcome::failed); // at once: nobody is here
    served a(front.address(), "a", way, 1), b(front.address(), "b", way, 2), c(front.address(), "c", way, 4);
    await_members(front, 3);
    CHECK(front.ready());
    float const weights[] = {1, 0.5f, 2};
    for (int i = 1; i < 50; ++i) {
        input[0] = static_cast<std::byte>(i);
        auto const answer = front.ask(input, 60s, {.k = 3, .weights = weights});
        CHECK(answer.outcome() == outcome::full);
        REQUIRE(answer.values().size() == elements);
        CHECK(answer.values()[elements - 1] == 10 * float(i));
        CHECK(answer.contributors().count() == 3);
    }
    CHECK(front.counters(1).answered == 49);
    for (auto const& m : front.members()) CHECK(m.shared == (way == lane::shared));
}
TEST_CASE("ensemble: over TCP") { asks_and_combines(lane::tcp); }
TEST_CASE("ensemble: through shared memory") { asks_and_combines(lane::shared); }

TEST_CASE("ensemble: where no quorum is named all are waited for until the deadline") {
    using patient = ensemble<float, combine::mean<space::value>>;
    static_assert(std::is_same_v<patient::pack::quorum, quorum::by_deadline<>>);
    patient::frontend front({.listen = "127.0.0.1:0",
                             .members = {"a", "b"},
                             .elements = elements,
                             .request_bytes = 16,
                             .secret = secret});
    auto const named = [&](char const* name) {
        return member_options{.frontends = {front.address()},
                              .name = name,
                              .elements = elements,
                              .request_bytes = 16,
                              .secret = secret};
    };
    patient::member a(named("a")), b(named("b"));
    while (front.admitted() < 2) std::this_thread::yield();
    std::thread members([&] {
        auto const answer = [](patient::member& me, float number) {
            auto job = me.next();
            for (float& x : job.row()) x = number;
            job.send();
        };
        answer(a, 1);
        auto late = b.next();
        std::this_thread::sleep_for(30ms); // the frontend has the other row long since
        for (float& x : late.row()) x = 3;
        late.send();
        answer(a, 5);
    });
    std::byte const input[16] = {};
    auto const both = front.ask(input, 60s);
    CHECK(both.outcome() == outcome::full);
    CHECK(both.values()[0] == 2);
    auto const one = front.ask(input, 2s);
    CHECK(one.outcome() == outcome::partial);
    CHECK(one.contributors() == member_set{0});
    CHECK(one.why(1) == miss::expired);
    CHECK(one.values()[0] == 5);
    members.join();
}

/// Of two replicas that answer with 10 · the request's number and their own, the first that gets a request which says so keeps it.
class replicas {
  public:
    using voters = ensemble<float, combine::mean<space::value>, quorum::at_least<1>>;
    replicas(std::string const& address, lane way) {
        for (std::uint32_t r = 0; r < 2; ++r) {
            each_[r] = std::make_unique<voters::member>(member_options{.frontends = {address},
                                                                       .name = "a",
                                                                       .replica = r,
                                                                       .elements = elements,
                                                                       .request_bytes = 16,
                                                                       .secret = secret,
                                                                       .lanes = way});
            threads_[r] = std::thread([this, r] { serve(r); });
        }
    }
    ~replicas() {
        let_go();
        for (auto& each : each_) each->stop();
        for (auto& each : threads_) each.join();
    }
    replicas(replicas const&) = delete;
    replicas& operator=(replicas const&) = delete;
    int keeper() const { return keeper_.load(); }
    void let_go() { gone_.store(true); }

  private:
    void serve(std::uint32_t r) {
        while (auto job = each_[r]->next()) {
            int nobody = -1;
            if (job.input()[1] != std::byte{0} &&
                keeper_.compare_exchange_strong(nobody, static_cast<int>(r)))
                while (!gone_.load()) std::this_thread::yield();
            for (float& x : job.row())
                x = static_cast<float>(10 * std::to_integer<unsigned>(job.input()[0]) + r);
            job.send();
        }
    }
    std::unique_ptr<voters::member> each_[2];
    std::thread threads_[2];
    std::atomic<int> keeper_{-1};
    std::atomic<bool> gone_{false};
};

TEST_CASE(
    "ensemble: where one replica keeps a request the other one answers it, and the row of the first counts "
    "for nothing") {
    for (lane const way : {lane::tcp, lane::shared}) {
        replicas::voters::frontend front(
            {.listen = "127.0.0.1:0",
             .members = {"a"},
             .elements = elements,
             .request_bytes = 16,
             .secret = secret,
             .replicas = 2,
             .hedging = {.percent = 100, .floor_us = 200, .samples = 1, .burst = 32},
             .lanes = way});
        replicas both(front.address(), way);
        for (std::size_t here = 0; here < 2; std::this_thread::yield()) {
            here = 0;
            for (auto const& m : front.members()) here += m.admitted;
        }
        std::byte input[16] = {};
        auto const asked = [&](unsigned number) {
            input[0] = static_cast<std::byte>(number);
            auto const answer = front.ask(input, 20s);
            REQUIRE(answer.outcome() == outcome::full);
            CHECK(answer.values()[elements - 1] == static_cast<float>(10 * number + answer.replica(0)));
            return answer.replica(0);
        };
        for (unsigned i = 1; i <= 4; ++i) asked(i);
        input[1] = std::byte{1};
        std::uint32_t const other = asked(5);
        CHECK(static_cast<int>(other) == 1 - both.keeper());
        CHECK(front.counters(0).hedged >= 1);
        CHECK(front.counters().hedges == front.counters(0).hedged);
        std::uint64_t const late = front.counters(0).late;
        both.let_go();
        input[1] = std::byte{0};
        auto const until = clock::now() + 20s;
        for (unsigned i = 6; front.counters(0).late == late && clock::now() < until; i = i % 200 + 1)
            asked(i);
        CHECK(front.counters(0).late > late); // the row of who kept the request
        CHECK(front.counters(0).refused() == 0);
    }
}

// Where a member of this process can write what a frontend of this process maps.
std::byte* writable(std::byte const* at) {
    std::ifstream maps("/proc/self/maps");
    struct mapping {
        std::uintptr_t begin, end, offset;
        unsigned long inode;
        bool writes;
    };
    std::vector<mapping> all;
    for (std::string line; std::getline(maps, line);) {
        mapping m{};
        char mode[5] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %lu", &m.begin, &m.end, mode, &m.offset,
                        &m.inode) != 5)
            continue;
        m.writes = mode[1] == 'w';
        all.push_back(m);
    }
    auto const where = reinterpret_cast<std::uintptr_t>(at);
    for (mapping const& of : all)
        if (of.begin <= where && where < of.end)
            for (mapping const& m : all)
                if (m.inode == of.inode && m.writes)
                    if (std::uintptr_t const to = m.begin + (where - of.begin) + of.offset - m.offset;
                        m.begin <= to && to < m.end)
                        return reinterpret_cast<std::byte*>(to);
    return nullptr;
}

// Three members answer through shared memory; then `change(member, lanes of its row)` writes, and only then the rows are folded.
template <class Ensemble, class Change>
typename Ensemble::answer changed_after_the_check(typename Ensemble::frontend& front, Change change) {
    std::vector<std::unique_ptr<typename Ensemble::member>> members;
    for (char const* name : {"a", "b", "c"})
        members.push_back(
            std::make_unique<typename Ensemble::member>(member_options{.frontends = {front.address()},
                                                                       .name = name,
                                                                       .elements = elements,
                                                                       .request_bytes = 16,
                                                                       .secret = secret,
                                                                       .lanes = lane::shared}));
    while (front.admitted() < members.size()) std::this_thread::yield();
    std::byte const input[16] = {};
    CHECK(front.submit(input, 60s, 0).accepted());
    for (auto const& each : members) {
        auto job = each->next();
        for (float& x : job.row()) x = 1;
        CHECK(job.send() == job_end::sent);
    }
    while (!front.core().request(0).decided) front.poll(); // the only one in flight
    auto const rows = front.core().rows(0);
    REQUIRE(rows.size() == members.size());
    for (std::size_t m = 0; m < rows.size(); ++m) {
        std::byte* const row = writable(rows[m].data());
        REQUIRE(row != nullptr);
        change(m, std::span(row, rows[m].size()));
    }
    typename Ensemble::answer made;
    std::uint64_t cookie = 1;
    CHECK(front.next_done(made, cookie));
    return made;
}
frontend_options of_three() {
    return {.listen = "127.0.0.1:0",
            .members = {"a", "b", "c"},
            .elements = elements,
            .request_bytes = 16,
            .in_flight = 1,
            .secret = secret,
            .k = 2,
            .lanes = lane::shared};
}
// A float of a row; −1: the last.
void put(std::span<std::byte> row, std::size_t from, std::ptrdiff_t element, float number) {
    std::size_t const at =
        element < 0 ? row.size() - sizeof number : from + static_cast<std::size_t>(element) * sizeof number;
    std::memcpy(row.data() + at, &number, sizeof number);
}

TEST_CASE("ensemble: a row that changes in shared memory after its check does not get into the answer") {
    using values = ensemble<float, combine::mean<space::value>, quorum::at_least<2>>;
    for (float const number : {std::nanf(""), std::numeric_limits<float>::infinity()})
        for (std::ptrdiff_t const element : {0, 50, -1}) {
            values::frontend front(of_three());
            auto const answer =
                changed_after_the_check<values>(front, [&](std::size_t m, std::span<std::byte> row) {
                    if (m == 1) put(row, 0, element, number);
                });
            CHECK(answer.outcome() == outcome::partial);
            CHECK(answer.contributors() == member_set{0, 2});
            CHECK(answer.why(1) == miss::refused_row);
            CHECK(front.counters(1).refused() == 1);
            CHECK(front.counters(0).refused() == 0);
            for (float const x : answer.values()) CHECK(x == 1);
            std::size_t rows = 0;
            answer.member_rows([&](auto const& row) { rows += row.member() != 1; });
            CHECK(rows == 2);
        }
}

TEST_CASE("ensemble: rows of fewer than k that are sound are no answer, and a large sum is nobody's fault") {
    using values = ensemble<float, combine::mean<space::value>, quorum::at_least<2>>;
    {
        values::frontend front(of_three());
        auto const answer =
            changed_after_the_check<values>(front, [&](std::size_t m, std::span<std::byte> row) {
                if (m != 2) put(row, 0, 7, std::nanf(""));
            });
        CHECK(answer.outcome() == outcome::failed);
        CHECK(answer.values().empty());
        CHECK(answer.contributors() == member_set{2});
    }
    values::frontend front(of_three());
    auto const answer = changed_after_the_check<values>(
        front, [&](std::size_t, std::span<std::byte> row) { put(row, 0, 7, 3e38f); });
    CHECK(answer.outcome() == outcome::full);
    CHECK(answer.values()[7] == std::numeric_limits<float>::infinity());
    CHECK(answer.values()[8] == 1);
    CHECK(front.counters(0).refused() == 0);
}

TEST_CASE("ensemble: probabilities and entries that change in shared memory after their check are none") {
    using shares = ensemble<float, combine::mean<space::probability>, quorum::at_least<2>>;
    shares::frontend front(of_three());
    auto const answer = changed_after_the_check<shares>(front, [&](std::size_t m, std::span<std::byte> row) {
        if (m == 1) put(row, 16, 7, 1e6f); // behind the head
    });
    CHECK(answer.contributors() == member_set{0, 2});
    for (float const x : answer.values()) CHECK(x == doctest::Approx(0.01));

    using largest = ensemble<float, combine::mean<space::probability>, wire::top_k<8>, quorum::at_least<2>>;
    largest::frontend few(of_three());
    auto const entries = changed_after_the_check<largest>(few, [&](std::size_t m, std::span<std::byte> row) {
        if (m == 1) put(row, 0, -1, 50); // e^50
    });
    CHECK(entries.contributors() == member_set{0, 2});
    CHECK(entries.entries().size() == 8);
    for (auto const& each : entries.entries()) CHECK(each.value == doctest::Approx(0.01));
}

// What a program does that has a thread for SIGTERM.
void leaves_from_another_thread(lane way) {
    voters::frontend front({.listen = "127.0.0.1:0",
                            .members = {"a", "b"},
                            .elements = elements,
                            .request_bytes = 16,
                            .secret = secret,
                            .k = 1,
                            .lanes = way});
    served stays(front.address(), "a", way, 1);
    std::atomic<bool> end{false};
    std::thread asks([&] {
        std::byte const input[16] = {std::byte{1}};
        while (!end.load()) (void)front.ask(input, 60s);
    });
    for (int round = 0; round < 5; ++round) {
        served leaves(front.address(), "b", way, 2);
        await_members(front, 2);
        for (auto const before = front.counters(1).answered; front.counters(1).answered < before + 3;)
            std::this_thread::yield();
        CHECK(leaves.me.leave(60s)); // its own thread is in `next`, or at a job
        CHECK(leaves.me.is_over());
        CHECK(leaves.me.leave(60s));
        while (front.members()[1].admitted) std::this_thread::yield(); // its acceptor says so before
    }
    end = true;
    asks.join();
    CHECK(front.counters(1).missing_for(miss::lost) == 0);
}
TEST_CASE("ensemble: a member leaves from another thread than that which answers, over TCP") {
    leaves_from_another_thread(lane::tcp);
}
TEST_CASE("ensemble: a member leaves from another thread than that which answers, through shared memory") {
    leaves_from_another_thread(lane::shared);
}

TEST_CASE("ensemble: who leaves waits for the job that another thread has") {
    voters::frontend front({.listen = "127.0.0.1:0",
                            .members = {"a"},
                            .elements = elements,
                            .request_bytes = 16,
                            .secret = secret,
                            .k = 1});
    voters::member me({.frontends = {front.address()},
                       .name = "a",
                       .elements = elements,
                       .request_bytes = 16,
                       .secret = secret});
    await_members(front, 1);
    std::byte const input[16] = {};
    CHECK(front.submit(input, 60s, 0).accepted());
    auto job = me.next();
    CHECK(!me.leave(0ms)); // the frontend is owed a row
    bool left = false;
    std::thread other([&] { left = me.leave(60s); });
    while (!front.members()[0].draining) std::this_thread::yield();
    for (float& x : job.row()) x = 3;
    CHECK(job.send() == job_end::sent);
    voters::answer answer;
    for (std::uint64_t cookie = 0; !front.next_done(answer, cookie);) front.poll();
    other.join();
    CHECK(left);
    CHECK(answer.outcome() == outcome::full);
    CHECK(answer.values()[0] == 3);
}

TEST_CASE("ensemble: a member of another shape is told what differs, and so is the frontend") {
    std::string told;
    std::atomic<bool> is_told{false};
    frontend_options o{.listen = "127.0.0.1:0",
                       .members = {"a"},
                       .elements = elements,
                       .request_bytes = 16,
                       .secret = secret,
                       .k = 1};
    o.on_change = [&](change const& c) {
        CHECK(c.what == change_kind::refused);
        CHECK(c.reason == admission_refusal::elements);
        told = c.why;
        is_told = true;
    };
    voters::frontend front(std::move(o));
    voters::member other({.frontends = {front.address()},
                          .name = "a",
                          .elements = elements + 1,
                          .request_bytes = 16,
                          .secret = secret});
    CHECK(!other.next());
    auto const status = other.status();
    REQUIRE(status.size() == 1);
    CHECK(status[0].now == frontend_status::state::refused);
    CHECK(status[0].why.find("101") != std::string::npos);
    CHECK(status[0].why.find("100") != std::string::npos);
    while (!is_told) std::this_thread::yield();
    CHECK(told.find(status[0].why) != std::string::npos); // and from where it came
    CHECK(front.counters().refused_for(admission_refusal::elements) == 1);
}

TEST_CASE("ensemble: options that make no sense") {
    auto const code = [](auto&& f) {
        try {
            f();
        } catch (error const& e) {
            return e.code();
        }
        return errc::ok;
    };
    CHECK(code([] { voters::frontend({.listen = "127.0.0.1:0", .members = {"a"}, .elements = 1}); }) ==
          errc::bad_argument); // k of the pack is 2
    CHECK(code([] { voters::member({.frontends = {"127.0.0.1:1"}, .elements = 1}); }) == errc::bad_argument);
}

} // namespace ensemble_test
