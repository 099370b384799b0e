// herring: local ranks as processes and threads: collectives, deaths, statuses, output.
// SPDX-License-Identifier: Apache-2.0
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using herring::errc;
using herring::launch;
using herring::launch_threads;
using herring::world;
using std::chrono::milliseconds;

namespace {

/// Sends what children say to stderr to nowhere while it lives.
struct quiet {
    int saved = ::dup(2);
    quiet() {
        int const null = ::open("/dev/null", O_WRONLY);
        ::dup2(null, 2);
        ::close(null);
    }
    ~quiet() {
        ::dup2(saved, 2);
        ::close(saved);
    }
};

/// Bytes that tell their rank and round.
std::vector<std::byte> pattern(int rank, int round, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        made[i] = static_cast<std::byte>(
            (static_cast<std::size_t>(rank) * 31 + static_cast<std::size_t>(round) * 7 + i) & 0xFF);
    return made;
}

/// 0 when all-gathers of mixed lengths, among barriers, give what was given.
int gathers(world& w) {
    for (int round = 0; round < 12; ++round) {
        // From nothing to several areas, and exactly one area.
        auto const length = [&](int rank) {
            return round == 3
                       ? std::size_t{4096}
                       : static_cast<std::size_t>((rank * 5003 + round * 911) % 17000) * (round % 3 != 0);
        };
        auto const all = w.all_gather(pattern(w.rank(), round, length(w.rank())));
        if (static_cast<int>(all.size()) != w.size()) return 3;
        for (int r = 0; r < w.size(); ++r)
            if (!std::ranges::equal(all[static_cast<std::size_t>(r)], pattern(r, round, length(r)))) return 4;
        if (round % 2 == 0) w.barrier();
    }
    return 0;
}

/// What an error must be on a rank: returns 0 when `f` throws it.
template <class Function> int throws(Function&& f, errc code, int peer, int local_rank) {
    try {
        f();
    } catch (herring::error const& why) {
        if (why.code() != code) return 11;
        if (why.peer() != peer) return 12;
        if (why.reported_by() != local_rank) return 13;
        return 0;
    }
    return 10;
}

} // namespace

TEST_CASE("launch: every rank has its place, and collectives work, as processes and as threads") {
    for (int const n : {1, 2, 3, 4, 7}) {
        CAPTURE(n);
        auto const body = [n](world& w) {
            if (w.size() != n || w.nodes() != 1 || w.local_size() != n || w.local_rank() != w.rank())
                return 2;
            if (w.ranks_on_this_machine() != n || w.local_address() != "127.0.0.1" || w.job() == 0) return 5;
            return gathers(w);
        };
        CHECK(launch(n, body) == 0);
        CHECK(launch_threads(n, body) == 0);
    }
}

TEST_CASE("launch: names of nodes make nodes") {
    auto const body = [](world& w) {
        if (w.nodes() != 2) return 2;
        if (w.node() != w.rank() % 2) return 3;
        if (w.local_size() != (w.rank() % 2 == 0 ? 3 : 2)) return 4;
        return w.local_rank() == w.rank() / 2 ? 0 : 5;
    };
    herring::launch_options options;
    options.nodes = {"a", "b", "a", "b", "a"};
    CHECK(launch(5, body, options) == 0);
    CHECK(launch_threads(5, body, options) == 0);
    CHECK_THROWS_AS(launch(4, body, options), herring::error);
    CHECK_THROWS_AS(launch(0, body), herring::error);
}

TEST_CASE("launch: roles make servers, which are nodes of their own") {
    auto const body = [](world& w) {
        bool const server = w.rank() == 1 || w.rank() == 3;
        if ((w.role() == herring::role::server) != server) return 2;
        if (w.workers() != 2 || w.servers() != 2) return 3;
        if (w.worker() != (server ? -1 : w.rank() / 2)) return 4;
        if (w.nodes() != 3 || w.local_size() != (server ? 1 : 2)) return 5;
        if (w.ranks_on_this_machine() != 4) return 6;
        return w.topology().rate(w.node()) == (w.rank() == 3 ? 20 : 10) ? 0 : 7;
    };
    herring::launch_options options;
    options.roles = {herring::role::worker, herring::role::server, herring::role::worker,
                     herring::role::server};
    options.rates = {10, 10, 10, 20};
    CHECK(launch(4, body, options) == 0);
    CHECK(launch_threads(4, body, options) == 0);
    CHECK_THROWS_AS(launch(3, body, options), herring::error);
    options.rates = {10, 10, 10, -1};
    CHECK_THROWS_AS(launch(4, body, options), herring::error);
}

TEST_CASE("launch: racks are of nodes, and of all ranks or of none") {
    auto const body = [](world& w) {
        int const nodes[] = {0, 2, 1, 2};
        return w.topology().racks() == 2 && w.node() == nodes[w.rank()] ? 0 : 2;
    };
    herring::launch_options options;
    options.nodes = {"a", "b", "c", "b"};
    options.racks = {"x", "y", "x", "y"};
    CHECK(launch(4, body, options) == 0);
    CHECK(launch_threads(4, body, options) == 0);
    auto const refusal = [&](std::vector<std::string> racks) {
        options.racks = std::move(racks);
        try {
            launch(4, body, options);
        } catch (herring::error const& why) {
            CHECK(why.code() == herring::errc::bad_argument);
            return std::string(why.what());
        }
        return std::string("nothing");
    };
    auto const says = [](std::string const& text, char const* what) { return text.find(what) != text.npos; };
    CHECK(says(refusal({"x", "y", "x"}), "launch_options::racks has 3 entries for 4 ranks"));
    CHECK(says(refusal({"x", "y", "", "y"}), "rank 0 is in rack 'x', rank 2 in no rack"));
    CHECK(says(refusal({"", "y", "x", "y"}), "rank 0 is in no rack, rank 1 in rack 'y'"));
    CHECK(says(refusal({"x", "y", "x", "x"}), "rank 1 is in rack 'y', rank 3 of the same node in rack 'x'"));
    CHECK(says(refusal({"x", "y", "x", std::string(65, 'y')}), "the rack of rank 3, 'yyyy"));
    CHECK(refusal({"", "", "", ""}) == "nothing");
}

TEST_CASE("launch: nobody leaves a barrier before everyone has come") {
    auto* const count = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    auto const body = [count](world& w) {
        for (int i = 1; i <= 3000; ++i) {
            count->fetch_add(1);
            w.barrier();
            if (count->load() < i * w.size()) return 2;
            w.barrier();
        }
        return 0;
    };
    for (int const n : {2, 4}) {
        count->store(0);
        CHECK(launch(n, body) == 0);
        count->store(0);
        CHECK(launch_threads(n, body) == 0);
    }
    ::munmap(count, 4096);
}

TEST_CASE("launch: the job is the same on every rank and another each time") {
    auto const job = [] {
        std::uint64_t found = 0;
        launch_threads(3, [&](world& w) {
            std::uint64_t const mine = w.job();
            auto const all = w.all_gather(std::as_bytes(std::span(&mine, 1)));
            for (auto const& theirs : all)
                if (std::memcmp(theirs.data(), &mine, sizeof mine) != 0)
                    throw std::runtime_error("jobs differ");
            if (w.rank() == 0) found = mine;
        });
        return found;
    };
    CHECK(job() != job());
}

TEST_CASE("launch: statuses and exceptions") {
    quiet const hush;
    CHECK(launch(3, [](world& w) { return w.rank() == 1 ? 42 : 0; }) == 42);
    CHECK(launch(3, [](world& w) {
              if (w.rank() == 2) throw std::runtime_error("on purpose");
          }) == 1);
    // A status has 8 bits: what has more does not become 0 in them.
    struct {
        long long result;
        int status;
    } const cases[] = {{1, 1}, {255, 255}, {256, 255}, {512, 255}, {-1, 255}, {-256, 255}, {1LL << 32, 255}};
    for (auto const& c : cases) {
        CAPTURE(c.result);
        CHECK(launch(2, [&](world& w) { return w.rank() == 1 ? c.result : 0; }) == c.status);
        CHECK(launch_threads(2, [&](world& w) { return w.rank() == 1 ? c.result : 0; }) == c.status);
    }
    CHECK(launch(2, [](world& w) { return w.rank() == 5; }) == 0);
    CHECK(launch(2, [](world& w) { return w.rank() == 1; }) == 1);
    CHECK(launch(2, [](world&) { std::exit(0); }) == 0);
    CHECK(launch(2, [](world& w) {
              if (w.rank() == 1) std::exit(9);
          }) == 9);
    CHECK(launch_threads(3, [](world& w) { return w.rank() == 1 ? 42 : 0; }) == 42);
    CHECK_THROWS_WITH(launch_threads(3,
                                     [](world& w) {
                                         if (w.rank() == 2) throw std::runtime_error("on purpose");
                                         w.barrier();
                                     }),
                      "on purpose");
}

TEST_CASE("launch: a rank that is killed is named to all others, and its signal is the status") {
    quiet const hush;
    for (int victim = 0; victim < 3; ++victim) {
        CAPTURE(victim);
        int const status = launch(3, [victim](world& w) {
            w.barrier();
            if (w.rank() == victim) ::kill(::getpid(), SIGKILL);
            return throws([&] { w.barrier(milliseconds(20'000)); }, errc::peer_lost, victim, w.rank());
        });
        CHECK(status == 128 + SIGKILL);
    }
    // Also to one that does not wait but asks.
    int const status = launch(2, [](world& w) {
        if (w.rank() == 1) ::kill(::getpid(), SIGKILL);
        auto const until = herring::clock::now() + std::chrono::seconds(20);
        while (w.failed() == nullptr && herring::clock::now() < until) ::sched_yield();
        return w.failed() != nullptr && w.failed()->peer == 1 ? 0 : 20;
    });
    CHECK(status == 128 + SIGKILL);
}

TEST_CASE("launch: a rank whose function throws ends the others' collectives") {
    quiet const hush;
    auto const body = [](world& w) {
        if (w.rank() == 1) throw std::runtime_error("on purpose");
        int const seen = throws([&] { w.barrier(milliseconds(20'000)); }, errc::peer_failed, 1, w.rank());
        if (seen != 0) std::exit(seen);
    };
    CHECK(launch(3, body) == 1);
}

TEST_CASE("launch: a rank that leaves is named by those who still wait") {
    auto const body = [](world& w) {
        if (w.rank() == 1) return 0;
        return throws([&] { w.barrier(milliseconds(20'000)); }, errc::peer_lost, 1, w.rank());
    };
    CHECK(launch(3, body) == 0);
    CHECK(launch_threads(3, body) == 0);
}

TEST_CASE("launch: a deadline names the ranks that did not come, on every rank") {
    auto const body = [](world& w) {
        if (w.rank() == 1) { // comes when the others have given up
            while (w.failed() == nullptr) ::sched_yield();
            return throws([&] { w.barrier(); }, errc::timeout, 1, 1);
        }
        return throws([&] { w.barrier(milliseconds(50)); }, errc::timeout, 1, w.rank());
    };
    CHECK(launch(3, body) == 0);
    CHECK(launch_threads(3, body) == 0);
}

TEST_CASE("launch: different collectives at once are a mismatch on every rank") {
    auto const body = [](world& w) {
        int const seen = throws(
            [&] {
                if (w.rank() == 1)
                    w.barrier();
                else
                    w.all_gather({});
                w.barrier();
            },
            errc::mismatch, 1, w.rank());
        return seen;
    };
    CHECK(launch(2, body) == 0);
    CHECK(launch_threads(2, body) == 0);
}

TEST_CASE("launch: ranks that do not end are ended") {
    quiet const hush;
    herring::launch_options options;
    options.grace = milliseconds(20);
    auto const stubborn = [](world& w) {
        if (w.rank() == 0) return 7;
        ::signal(SIGTERM, SIG_IGN);
        while (true) ::pause();
    };
    CHECK(launch(2, stubborn, options) == 7);
    options.timeout = milliseconds(50);
    CHECK(launch(
              2,
              [](world&) {
                  ::signal(SIGTERM, SIG_DFL); // doctest's handler would write a report
                  while (true) ::pause();
              },
              options) == 124);
}

TEST_CASE("launch: what was buffered is printed once, what children print is not lost") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_t const runner = ::fork();
    if (runner == 0) {
        ::dup2(ends[1], 1);
        ::close(ends[0]);
        ::close(ends[1]);
        std::printf("before;");
        int const status = launch(3, [](world&) { std::printf("rank;"); });
        std::printf("after;");
        std::fflush(nullptr);
        ::_exit(status);
    }
    ::close(ends[1]);
    std::string said;
    char bytes[256];
    for (ssize_t n = 0; (n = ::read(ends[0], bytes, sizeof bytes)) > 0;)
        said.append(bytes, static_cast<std::size_t>(n));
    ::close(ends[0]);
    ::waitpid(runner, nullptr, 0);
    CHECK(said == "before;rank;rank;rank;after;");
}

TEST_CASE("launch: ranks end with the process that launched them") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_t const runner = ::fork();
    if (runner == 0) {
        ::close(ends[0]);
        int const write_end = ends[1];
        launch(2, [write_end](world& w) {
            w.barrier();
            if (w.rank() == 0 && ::write(write_end, "x", 1) != 1) return;
            while (true) ::pause();
        });
        ::_exit(0);
    }
    ::close(ends[1]);
    char byte = 0;
    REQUIRE(::read(ends[0], &byte, 1) == 1); // both ranks run
    ::kill(runner, SIGKILL);
    ::waitpid(runner, nullptr, 0);
    pollfd ended{ends[0], POLLIN, 0};
    REQUIRE(::poll(&ended, 1, 20'000) == 1);
    CHECK(::read(ends[0], &byte, 1) == 0); // the pipe ends when the last rank is gone
    ::close(ends[0]);
}

TEST_CASE("launch: worlds of threads may be kept and given away") {
    std::vector<world> worlds = herring::thread_worlds(2);
    REQUIRE(worlds.size() == 2);
    worlds[1].fail(herring::failure::make(errc::device, 1, -1, "test", "on purpose"));
    REQUIRE(worlds[0].failed() != nullptr);
    CHECK(worlds[0].failed()->reporter == 1);
    worlds.pop_back();
    CHECK(worlds[0].failed() != nullptr);
}

namespace {

/// Worlds of threads in which rank 0 accuses rank 1, and what came of it.
struct court {
    std::vector<world> worlds;
    herring::detail::suspicion_report of{};

    explicit court(int ranks) : worlds(herring::thread_worlds(ranks)) {
        of.why = herring::failure::make(errc::timeout, 0, 1, "wait", "its part has not come; look");
    }
    herring::detail::failure_detector& detector(int r) { return herring::detail::detector(rank(r)); }
    world& rank(int r) { return worlds[static_cast<std::size_t>(r)]; }
    void answers(int r, int whom) { detector(r).waits_for(whom, detector(r).probe()); }
    herring::failure const* verdict() {
        detector(0).report_suspicion(of);
        return rank(0).failed();
    }
};

bool says(herring::failure const& why, char const* text) { return std::strstr(why.text, text) != nullptr; }

} // namespace

TEST_CASE("launch: who is accused and has not called is named") {
    court here(3);
    REQUIRE(here.verdict() != nullptr);
    CHECK(here.verdict()->peer == 1);
    CHECK(says(*here.verdict(), "rank 1 has not called"));
}

TEST_CASE("launch: blame follows those who wait, once they have answered") {
    court here(4);
    here.answers(1, 2); // before it was asked: that may be of any age
    here.answers(2, 3);
    CHECK(here.verdict() == nullptr);
    here.answers(1, 2);
    CHECK(here.verdict() == nullptr);
    here.answers(2, 3);
    REQUIRE(here.verdict() != nullptr);
    for (int r = 0; r < 4; ++r) CHECK(here.rank(r).failed()->peer == 3);
    CHECK(says(*here.verdict(), "rank 2 waits for rank 3, which has not called"));
}

TEST_CASE("launch: who does not answer in time is named, and who has left or waits no more at once") {
    {
        court here(3);
        here.answers(1, 2);
        CHECK(here.verdict() == nullptr);
        here.of.waited = std::chrono::seconds(2);
        REQUIRE(here.verdict() != nullptr);
        CHECK(here.verdict()->peer == 1);
        CHECK(says(*here.verdict(), "does not answer"));
    }
    {
        court here(3);
        here.answers(1, 2);
        CHECK(here.verdict() == nullptr);
        here.detector(1).not_waiting();
        REQUIRE(here.verdict() != nullptr);
        CHECK(here.verdict()->peer == 1);
    }
    {
        court here(3);
        here.worlds.pop_back(); // rank 2 leaves
        CHECK(here.detector(0).probe() == 0);
        here.answers(1, 2);
        CHECK(here.verdict() == nullptr);
        here.answers(1, 2);
        REQUIRE(here.verdict() != nullptr);
        CHECK(here.verdict()->peer == 2);
        CHECK(says(*here.verdict(), "which has left"));
    }
}

TEST_CASE("launch: what is certain stands, and follows nobody") {
    court here(3);
    here.of.certain = true;
    here.answers(1, 2);
    REQUIRE(here.verdict() != nullptr);
    CHECK(here.verdict()->peer == 1);
    CHECK(here.verdict()->text == std::string("its part has not come; look"));
}

TEST_CASE("launch: where SIGCHLD is ignored, statuses are what they are, and it stays ignored") {
    quiet const hush;
    struct sigaction before {};
    struct sigaction ours {};
    struct sigaction after {};
    for (bool const by_flag : {false, true}) {
        CAPTURE(by_flag);
        ours = {};
        ours.sa_handler = by_flag ? SIG_DFL : SIG_IGN;
        ours.sa_flags = by_flag ? SA_NOCLDWAIT : 0;
        ::sigaction(SIGCHLD, &ours, &before);
        int const well = launch(3, [&](world& w) {
            struct sigaction seen {};
            ::sigaction(SIGCHLD, nullptr, &seen);
            w.barrier();
            return seen.sa_handler == ours.sa_handler && (seen.sa_flags & SA_NOCLDWAIT) == ours.sa_flags ? 0
                                                                                                         : 5;
        });
        int const seven = launch(2, [](world& w) { return w.rank() == 1 ? 7 : 0; });
        int const killed = launch(2, [](world& w) {
            if (w.rank() == 1) ::kill(::getpid(), SIGKILL);
        });
        ::sigaction(SIGCHLD, &before, &after);
        CHECK(well == 0);
        CHECK(seven == 7);
        CHECK(killed == 128 + SIGKILL);
        CHECK((after.sa_handler == ours.sa_handler));
        CHECK((after.sa_flags & SA_NOCLDWAIT) == ours.sa_flags);
    }
}

TEST_CASE("launch: a rank whose process somebody else reaps is told of") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    int const saved = ::dup(2);
    ::dup2(ends[1], 2);
    // A handler that waits for any child, as some programs have.
    struct sigaction ours {};
    struct sigaction before {};
    ours.sa_handler = [](int) {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    };
    ours.sa_flags = SA_RESTART;
    ::sigaction(SIGCHLD, &ours, &before);
    int const status = launch(1, [](world&) {});
    ::sigaction(SIGCHLD, &before, nullptr);
    ::dup2(saved, 2);
    ::close(saved);
    ::close(ends[1]);
    char text[512] = {};
    REQUIRE(::read(ends[0], text, sizeof text - 1) > 0);
    ::close(ends[0]);
    CHECK(status == 1);
    CAPTURE(text);
    CHECK(std::strstr(text, "rank 0: it ended, and another part of this program has reaped its process") !=
          nullptr);
}
