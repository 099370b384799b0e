// herring: tests of engine/ledger.hpp: the order of its counts, and that debug builds assert it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/ledger.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace herring;
using herring::detail::execution_ledger;

namespace {

/// The assertion that ends `what`, in a process of its own; "" if none does.
template <class Function> std::string assertion_in(Function&& what) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    std::fflush(nullptr);
    pid_t const child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL); // not doctest's
        ::dup2(ends[1], STDERR_FILENO);
        what();
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string text;
    char some[256];
    for (ssize_t got = 0; (got = ::read(ends[0], some, sizeof some)) > 0;)
        text.append(some, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) return text.empty() ? "aborted" : text;
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    return {};
}

shard const three_chunks[] = {
    {.offset = 0, .elements = 40, .chunk_elements = 16, .chunks = 3, .first_chunk = 0, .server = {0}}};

execution with_chunks(route path = route::two_hop) {
    execution e;
    e.shards = three_chunks;
    e.shard_count = 1;
    e.path = path;
    e.elements = 40;
    return e;
}

/// One execution, which has arrived on all local ranks; this rank handles all its chunks.
void arrive_with(execution_ledger& ledger, execution const& e) {
    ledger.handles({0, 1}, true, server_id{0});
    ledger.request(e);
    ledger.take_requests();
    ledger.arrive();
    ledger.arrive_all();
}

} // namespace

TEST_CASE("ledger: requested, submitted, arrived, all arrived, finished, released: each count follows one "
          "before it") {
    execution_ledger ledger(3);
    ledger.handles({0, 1}, true, server_id{0});
    std::mt19937 random(5);
    std::uint64_t next = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::uint64_t const requested = ledger.requested(), released = ledger.released();
        switch (random() % 6) {
        case 0:
            if (requested - released == 3) break;
            CHECK(ledger.request(execution{.elements = next}) == next);
            ++next;
            break;
        case 1:
            ledger.take_requests();
            CHECK(ledger.submitted() == requested);
            break;
        case 2:
            if (ledger.arrived() < ledger.submitted()) ledger.arrive();
            break;
        case 3:
            if (ledger.all_arrived() < ledger.arrived()) ledger.arrive_all();
            break;
        case 4:
            if (ledger.finished() < ledger.all_arrived()) ledger.finish();
            break;
        case 5:
            if (released < ledger.finished()) ledger.release();
            break;
        }
        CHECK(ledger.requested() >= ledger.submitted());
        CHECK(ledger.submitted() >= ledger.arrived());
        CHECK(ledger.arrived() >= ledger.all_arrived());
        CHECK(ledger.arrived() >= ledger.finished());
        CHECK(ledger.finished() >= ledger.released());
        // Entries of those that are under way, and of the last one that is over, are kept.
        for (std::uint64_t n = ledger.released(); n < ledger.requested(); ++n)
            CHECK(ledger.at(n).elements == n);
    }
    CHECK(ledger.released() > 1000);
}

TEST_CASE("ledger: an execution is pending until as much is done as was added") {
    execution_ledger ledger(2);
    arrive_with(ledger, with_chunks());
    CHECK_FALSE(ledger.is_pending(0));
    ledger.add(0, 2);
    ledger.add(0);
    for (int i = 0; i < 3; ++i) {
        CHECK(ledger.is_pending(0));
        ledger.done(0);
        ledger.handled(0);
    }
    CHECK_FALSE(ledger.is_pending(0));
    ledger.finish();
    CHECK(ledger.finished() == 1);
    CHECK(ledger.released() == 0);
}

TEST_CASE(
    "ledger: a rank handles its chunks of the shards that its node serves; of all where it contributes") {
    shard const shards[] = {
        {.elements = 50, .chunk_elements = 10, .chunks = 5, .server = {0}},
        {.offset = 50, .elements = 30, .chunk_elements = 10, .chunks = 3, .server = {1}},
        {.offset = 80, .elements = 20, .chunk_elements = 10, .chunks = 2, .server = {1}, .owner = 1},
    };
    execution e;
    e.shards = shards;
    e.shard_count = 3;
    execution_ledger ledger(1);
    auto const count = [&](chunk_stream own, bool contributes, int served) {
        ledger.handles(own, contributes, server_id{served});
        return ledger.chunks_of(e);
    };
    CHECK(count({0, 1}, true, 0) == 10);
    CHECK(count({0, 2}, true, 0) == 3 + 2);
    CHECK(count({1, 2}, true, 0) == 2 + 1 + 2); // the third shard is this rank's
    CHECK(count({0, 1}, false, 0) == 5);
    CHECK(count({0, 1}, false, 1) == 5);
    CHECK(count({0, 2}, false, 1) == 2);
    CHECK(count({1, 2}, false, 1) == 1 + 2);
    CHECK(count({0, 1}, false, -1) == 0); // the node neither contributes nor serves
}

TEST_CASE("ledger: networked executions have numbers of their own, the same on every node") {
    execution_ledger ledger(8);
    route const paths[] = {route::local,   route::one_hop, route::mailbox,      route::two_hop,
                           route::two_hop, route::local,   route::dissemination};
    std::uint64_t networked = 0, number = 0;
    std::uint64_t elements = 0; // of those
    CHECK(ledger.networked_before(0) == 0);
    for (route const path : paths) {
        CHECK(ledger.request(execution{.path = path, .elements = 10 + number}) == number);
        CHECK(ledger.network_number(number) == networked);
        CHECK(ledger.elements_before(number) == elements);
        if (path != route::local && path != route::mailbox) {
            ++networked;
            elements += 10 + number;
        }
        CHECK(ledger.networked_before(++number) == networked);
    }
    CHECK(networked == 4);
}

#ifndef NDEBUG // asserts are compiled
TEST_CASE("ledger: debug builds stop at a count that overtakes the one before it") {
    struct slip {
        char const* says;
        void (*does)(execution_ledger&);
    };
    slip const slips[] = {
        {"arrived_ < submitted_",
         [](execution_ledger& l) {
             l.request({});
             l.arrive(); // nothing was taken
         }},
        {"all_arrived_ < arrived_",
         [](execution_ledger& l) {
             l.request({});
             l.take_requests();
             l.arrive_all();
         }},
        {"finished_ < arrived_",
         [](execution_ledger& l) {
             l.request({});
             l.take_requests();
             l.finish();
         }},
        {"number < finished_",
         [](execution_ledger& l) {
             l.request({});
             l.take_requests();
             l.arrive();
             l.release();
         }},
        {"pending > 0", [](execution_ledger& l) { l.done(0); }},
    };
    for (slip const& one : slips) {
        CAPTURE(one.says);
        std::string const said = assertion_in([&] {
            execution_ledger ledger(2);
            one.does(ledger);
        });
        CHECK(said.find(one.says) != std::string::npos);
    }
    CHECK(assertion_in([] {
              execution_ledger ledger(2);
              arrive_with(ledger, {});
              ledger.finish();
              ledger.release();
          }) == "");
}

TEST_CASE("ledger: debug builds stop where an execution ends before all is done, or before all chunks are "
          "handled") {
    for (int handled = 0; handled <= 4; ++handled) {
        CAPTURE(handled);
        std::string const said = assertion_in([&] {
            execution_ledger ledger(2);
            arrive_with(ledger, with_chunks());
            ledger.add(0);
            for (int i = 0; i < handled; ++i) ledger.handled(0);
            ledger.done(0);
            ledger.finish();
        });
        CHECK((said.find("handled ==") != std::string::npos) == (handled != 3));
    }
    std::string const pending = assertion_in([] {
        execution_ledger ledger(2);
        arrive_with(ledger, with_chunks());
        ledger.add(0);
        ledger.handled_all(0);
        ledger.finish();
    });
    CHECK(pending.find("pending == 0") != std::string::npos);
    CHECK(assertion_in([] {
              execution_ledger ledger(2);
              arrive_with(ledger, with_chunks(route::local));
              ledger.handled_all(0);
              ledger.finish();
          }) == "");
}
#endif
