// herring: a process that is stopped is noticed whatever the others do, named by all, and told so if it goes on.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/progress/progress.hpp"

#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <random>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>

using namespace fault;

namespace {

/// Counts the failed checks of this process.
struct failed_checks : doctest::IReporter {
    static inline int count = 0;
    explicit failed_checks(doctest::ContextOptions const&) {}
    void log_assert(doctest::AssertData const& check) override { count += check.m_failed ? 1 : 0; }
    void test_case_exception(doctest::TestCaseException const&) override {}
    void report_query(doctest::QueryData const&) override {}
    void test_run_start() override {}
    void test_run_end(doctest::TestRunStats const&) override {}
    void test_case_start(doctest::TestCaseData const&) override {}
    void test_case_reenter(doctest::TestCaseData const&) override {}
    void test_case_end(doctest::CurrentTestCaseStats const&) override {}
    void subcase_start(doctest::SubcaseSignature const&) override {}
    void subcase_end() override {}
    void log_message(doctest::MessageData const&) override {}
    void test_case_skipped(doctest::TestCaseData const&) override {}
};
REGISTER_LISTENER("failed_checks", 1, failed_checks);

using scene = std::function<void()>;

/// Plays a scene in a process of its own, whose exit status says whether a check failed.
pid_t begin(scene const& what) {
    std::cout.flush();
    std::fflush(nullptr);
    pid_t const pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool threw = true;
    try {
        what();
        threw = false;
    } catch (std::exception const& why) {
        std::printf("a scene ended with: %s\n", why.what());
    } catch (...) { // a failed REQUIRE, which has been reported
    }
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(threw || failed_checks::count != 0 ? 1 : 0);
}

/// Plays scenes, three at a time: they mostly wait.
void play_all(std::vector<scene> const& scenes) {
    std::size_t begun = 0, ended = 0;
    for (; ended < scenes.size(); ++ended) {
        for (; begun < scenes.size() && begun < ended + 3; ++begun) REQUIRE(begin(scenes[begun]) > 0);
        int status = -1;
        REQUIRE(::wait(&status) > 0);
        CHECK(status == 0); // else the scene has said what failed
    }
}

/// A rank that stops is dead after that. One scene takes what is usual, 5 s.
constexpr milliseconds dead{1'000 * slower}, usual{5'000};
/// Slack for busy machines.
constexpr milliseconds slack{2'500};

/// What the others do when the victim stops.
enum class phase { computing, barrier, in_step, in_background };

constexpr char const* to_string(phase p) {
    switch (p) {
    case phase::computing:
        return "while all compute";
    case phase::barrier:
        return "before a barrier";
    case phase::in_step:
        return "in a step";
    case phase::in_background:
        return "in a step of a progress thread";
    }
    return "?";
}

struct place {
    char const* name;
    int ranks;
    bool on_nodes; // shared memory
    bool two;      // nodes
};
constexpr place by_tcp{"tcp", 3, false, false}, on_one_node{"shared memory", 3, true, false},
    on_two_nodes{"two nodes", 4, true, true};

/// Asks until the world has failed; nobody waits for anybody.
void compute(world& w) {
    time_point const until = clock::now() + plenty;
    while (w.failed() == nullptr) {
        require(clock::now() < until, "the world fails");
        std::this_thread::sleep_for(milliseconds(5)); // its work
    }
    w.check();
}

void stop_after(board& b, std::chrono::microseconds delay) {
    std::thread([&b, delay] {
        std::this_thread::sleep_for(delay); // waits for nothing: makes the moment arbitrary
        b.strike();
        ::kill(::getpid(), SIGSTOP);
    }).detach();
}

template <class Reducer>
void live_and_stop(world& w, board& b, phase at, int victim, std::chrono::microseconds delay) {
    bool const stops = w.rank() == victim;
    Reducer reduce(w, layout{{"first", 1'000'000}, {"small", 500}, {"second", 700'001}});
    step(reduce, w, 0);
    w.barrier();
    try {
        if (stops && (at == phase::computing || at == phase::barrier)) {
            b.strike();
            ::kill(::getpid(), SIGSTOP);
        } else if (stops) {
            stop_after(b, delay);
        }
        if (at == phase::computing) compute(w);
        if (at == phase::barrier) w.barrier();
        for (int n = 1;; ++n) step(reduce, w, n);
    } catch (herring::error const&) {
        // The last one of the others lets it go on: it has to be told that it was given up.
        if (!stops && b.entered.fetch_add(1) + 1 == w.size() - 1) ::kill(b.ranks[victim].pid.load(), SIGCONT);
        throw;
    }
}

void play_stop(place const& where, start how, phase at, int victim, std::chrono::microseconds delay,
               milliseconds peer_timeout = dead) {
    setup s;
    s.how = how;
    s.ranks = where.ranks;
    if (where.two) s.nodes = two_nodes(where.ranks);
    s.name = std::string(where.name) + ", stopped " + to_string(at);
    if (peer_timeout != usual) s.failure_detector.peer_timeout = peer_timeout;
    report const seen = play(s, [&](world& w, board& b) {
        using background = herring::progress::thread;
        if (at == phase::in_background && where.on_nodes)
            live_and_stop<flat_of<herring::intra_node::shared_memory, background>>(w, b, at, victim, delay);
        else if (at == phase::in_background)
            live_and_stop<flat_of<background>>(w, b, at, victim, delay);
        else if (where.on_nodes)
            live_and_stop<shared>(w, b, at, victim, delay);
        else
            live_and_stop<flat>(w, b, at, victim, delay);
    });
    check_named(s, seen, victim, {errc::peer_lost}, peer_timeout + slack);
    INFO(seen.text());
    for (int r = 0; r < s.ranks; ++r)
        if (r != victim)
            CHECK(seen.ranks[static_cast<std::size_t>(r)].after_ms >
                  0.7 * static_cast<double>(peer_timeout.count()));
    auto const& told = seen.ranks[static_cast<std::size_t>(victim)];
    CHECK(told.how == state::error);
    CHECK(told.why.peer == victim);
    // By the detector, or by a rank that has asked it in vain for as long.
    bool const knows = std::strstr(told.why.text, "given up") != nullptr ||
                       std::strstr(told.why.text, "gave this rank up") != nullptr;
    CHECK(knows);
    std::printf("[stopped] %-14s %-6s rank %d of %d %s: dead after %d ms, %.0f ms to the last error; it is "
                "told \"%.60s...\"\n",
                where.name, to_string(how).c_str(), victim, s.ranks, to_string(at),
                static_cast<int>(peer_timeout.count()), seen.slowest_ms(victim), told.why.text);
}

unsigned seed(unsigned otherwise) {
    char const* const other = std::getenv("FAULT_SEED");
    return other != nullptr ? static_cast<unsigned>(std::atoi(other)) : otherwise;
}

} // namespace

TEST_CASE("stopped: nobody waits with a deadline, and everyone hears of it after peer_timeout; so does it") {
    std::mt19937 random(seed(1));
    std::vector<scene> scenes;
    auto const stop = [&](place const& where, start how, phase at, int victim,
                          milliseconds peer_timeout = dead) {
        std::chrono::microseconds const delay(random() % 30'000);
        scenes.push_back([=] { play_stop(where, how, at, victim, delay, peer_timeout); });
    };
    stop(by_tcp, start::join, phase::computing, 2, usual);
    stop(by_tcp, start::launch, phase::computing, 2, milliseconds(500 * slower));
    stop(by_tcp, start::join, phase::in_step, 0);
    stop(by_tcp, start::launch, phase::in_step, 1);
    stop(on_one_node, start::join, phase::computing, 0);
    stop(on_one_node, start::launch, phase::computing, 0);
    stop(on_one_node, start::join, phase::in_step, 1);
    stop(on_one_node, start::launch, phase::barrier, 2);
    stop(on_two_nodes, start::join, phase::barrier, 1);
    stop(on_two_nodes, start::join, phase::in_step, static_cast<int>(random() % 4));
    stop(on_two_nodes, start::launch, phase::in_background, static_cast<int>(random() % 4));
    stop(by_tcp, start::join, phase::in_background, 0);
    play_all(scenes);
}

namespace {

/// The victim is stopped for `time` in the middle of its work; all end well.
void goes_on(place const& where, start how, int victim, milliseconds peer_timeout, milliseconds time) {
    setup s;
    s.how = how;
    s.ranks = where.ranks;
    if (where.two) s.nodes = two_nodes(where.ranks);
    s.name = std::string(where.name) + ": stopped for a while";
    s.failure_detector.peer_timeout = peer_timeout;
    report const seen = play(s, [&](world& w, board& b) {
        auto const body = [&](auto* which) {
            using reducer = std::remove_pointer_t<decltype(which)>;
            reducer reduce(w, layout{{"first", 1'000'000}, {"small", 500}});
            step(reduce, w, 0);
            w.barrier();
            if (w.rank() == victim) stop_after(b, std::chrono::microseconds(500));
            if (w.rank() == (victim + 1) % w.size()) {
                std::thread([&b, victim, time] {
                    await(b.struck_ns, 1);
                    std::this_thread::sleep_for(time); // this is what it is about
                    ::kill(b.ranks[victim].pid.load(), SIGCONT);
                    b.entered.fetch_add(1);
                }).detach();
            }
            for (int n = 1; n < 40; ++n) step(reduce, w, n);
            w.barrier();
            await(b.entered, 1);
            step(reduce, w, 40);
            w.barrier();
        };
        where.on_nodes ? body(static_cast<shared*>(nullptr)) : body(static_cast<flat*>(nullptr));
    });
    INFO(s.name << " over " << to_string(how) << ", rank " << victim << "\n" << seen.text());
    for (auto const& one : seen.ranks) CHECK(one.how == state::done);
    CHECK(seen.took_ms > static_cast<double>(time.count()));
}

} // namespace

TEST_CASE("stopped: a rank that goes on before peer_timeout has passed is missed by nobody") {
    constexpr milliseconds patient{2'000 * slower}, a_while{1'000 * slower};
    play_all({[=] { goes_on(by_tcp, start::join, 0, patient, a_while); },
              [=] { goes_on(by_tcp, start::join, 1, patient, a_while); },
              [=] { goes_on(on_one_node, start::launch, 1, patient, a_while); },
              [=] { goes_on(on_two_nodes, start::join, 3, patient, a_while); }});
}

TEST_CASE("stopped: with peer_timeout never, a rank may be stopped longer than is usual") {
    constexpr milliseconds longer = usual + milliseconds(500);
    play_all({[=] { goes_on(on_two_nodes, start::launch, 2, herring::never, longer); },
              [=] { goes_on(on_two_nodes, start::join, 0, herring::never, longer); }});
}

TEST_CASE("stopped: with peer_timeout and default_timeout never, a rank that is killed is named at once") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 3;
        s.failure_detector.peer_timeout = s.default_timeout = herring::never;
        s.name = "never";
        report const seen = play(s, [&](world& w, board& b) {
            shared reduce(w, layout{{"first", 1'000}});
            step(reduce, w, 0);
            w.barrier();
            if (w.rank() == 1) b.die();
            step(reduce, w, 1);
        });
        check_named(s, seen, 1, {errc::peer_lost});
    }
}

TEST_CASE("stopped: default_timeout is the deadline of calls that have none") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 2;
        s.default_timeout = milliseconds(400 * slower);
        s.name = "default_timeout";
        report const seen = play(s, [&](world& w, board& b) {
            shared reduce(w, layout{{"first", 1'000}});
            step(reduce, w, 0);
            if (w.rank() == 1) {
                outlast(b, 1); // it never calls
                return;
            }
            b.strike();
            step(reduce, w, 1);
        });
        check_named(s, seen, 1, {errc::timeout});
        CHECK(seen.ranks[0].after_ms >= 400);
    }
}

TEST_CASE("stopped: a rank whose own deadline passes meanwhile suspects nobody") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 3;
        s.name = "stopped beyond its own deadline";
        report const seen = play(s, [&](world& w, board& b) {
            shared reduce(w, layout{{"first", 1'000'000}, {"small", 500}});
            step(reduce, w, 0);
            w.barrier();
            if (w.rank() == 1) {
                // The others come when it has been stopped and goes on: it waits all the time.
                stop_after(b, milliseconds(20));
                for (std::size_t i = 0; i < reduce.size(); ++i) {
                    fill(reduce, w, 1, i);
                    reduce.ready(i);
                }
                reduce.wait(clock::now() + milliseconds(600 * slower)).value();
                verify(reduce, w, 1);
                return;
            }
            if (w.rank() == 0) {
                await(b.struck_ns, 1);
                std::this_thread::sleep_for(milliseconds(1'200 * slower)); // this is what it is about
                ::kill(b.ranks[1].pid.load(), SIGCONT);
                b.entered.fetch_add(1);
            }
            await(b.entered, 1);
            step(reduce, w, 1);
        });
        INFO(s.name << " over " << to_string(how) << "\n" << seen.text());
        for (auto const& one : seen.ranks) CHECK(one.how == state::done);
    }
}
