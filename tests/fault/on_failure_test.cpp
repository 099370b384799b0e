// herring: ranks that are in no call of Herring's are told of a failure by on_failure, once, and at once.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <thread>

using namespace fault;

namespace {

enum class cause { kill, stop, announce, none };

std::string to_string(cause c) {
    switch (c) {
    case cause::kill:
        return "killed";
    case cause::stop:
        return "stopped";
    case cause::announce:
        return "announces a failure";
    case cause::none:
        return "leaves in order";
    }
    return "?";
}

constexpr milliseconds dead{500 * slower};

/// What this process's on_failure has heard.
struct told {
    std::atomic<std::uint32_t> calls{0};
    std::int64_t at_ns = 0;
    failure why{};
} own;

void hear(failure const& why) {
    own.why = why;
    own.at_ns = now_ns();
    own.calls.fetch_add(1);
    herring::detail::futex_wake(own.calls);
}

void play_one(start how, cause what, int victim) {
    setup s;
    s.how = how;
    s.ranks = 3;
    s.failure_detector.peer_timeout = dead;
    s.on_failure = hear;
    s.name = "on_failure: a rank " + to_string(what);
    report const seen = play(s, [&](world& w, board& b) {
        w.barrier();
        if (w.rank() == victim) {
            b.strike();
            if (what == cause::kill) ::kill(::getpid(), SIGKILL);
            if (what == cause::stop) ::kill(::getpid(), SIGSTOP);
            if (what == cause::announce)
                w.fail(failure::make(errc::device, victim, -1, "test", "on purpose"));
        }
        if (what == cause::none) {
            w.barrier();
            { world const gone = std::move(w); }
            require(own.calls.load() == 0, "no call without a failure");
            return;
        }
        // No call of Herring's: as if in MPI_Wait.
        time_point const until = clock::now() + dead + promptly;
        while (own.calls.load() == 0 && clock::now() < until)
            herring::detail::futex_wait(own.calls, 0, until - clock::now());
        require(own.calls.load() == 1, "it is told");
        b.ranks[w.rank()].value.store(static_cast<long>((own.at_ns - b.struck_ns.load()) / 1'000'000));
        if (b.entered.fetch_add(1) + 1 == w.size() - 1 && what == cause::stop)
            ::kill(b.ranks[victim].pid.load(), SIGKILL);
        failure const why = own.why;
        require(w.failed() != nullptr, "the world has failed");
        { world const gone = std::move(w); }
        require(own.calls.load() == 1, "it is told once");
        throw herring::error(why);
    });
    if (what == cause::none) {
        INFO(s.name << " over " << fault::to_string(how) << "\n" << seen.text());
        for (auto const& one : seen.ranks) CHECK(one.how == state::done);
        return;
    }
    std::vector<errc> const codes =
        what == cause::announce ? std::vector{errc::device, errc::peer_failed} : std::vector{errc::peer_lost};
    check_named(s, seen, victim, codes, what == cause::stop ? dead + promptly : promptly);
    long most = 0;
    for (int r = 0; r < s.ranks; ++r)
        if (r != victim) most = std::max(most, seen.ranks[static_cast<std::size_t>(r)].value);
    if (what == cause::announce) { // who fails is told as well
        CHECK(seen.ranks[static_cast<std::size_t>(victim)].how == state::error);
        CHECK(seen.ranks[static_cast<std::size_t>(victim)].why.what == errc::device);
    }
    std::printf("[on_failure] %-6s rank %d of %d %s: the last one hears of it after %ld ms\n",
                fault::to_string(how).c_str(), victim, s.ranks, to_string(what).c_str(), most);
}

} // namespace

TEST_CASE("on_failure: whoever is in no call is told who failed, once") {
    for (start const how : {start::launch, start::join}) {
        for (int const victim : {0, 2}) {
            play_one(how, cause::kill, victim);
            play_one(how, cause::announce, victim);
        }
        play_one(how, cause::stop, 1);
        play_one(how, cause::stop, 0);
        play_one(how, cause::none, 1);
    }
}

TEST_CASE("on_failure: it may end the process") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 2;
        s.on_failure = [](failure const& why) { ::_exit(why.peer == 1 ? 7 : 8); };
        std::int64_t const from = now_ns();
        report const seen = play(s, [&](world& w, board& b) {
            w.barrier();
            if (w.rank() == 1) b.die();
            std::this_thread::sleep_for(plenty); // as if in MPI_Wait
        });
        CHECK(milliseconds_since(from) < static_cast<double>(promptly.count()));
        if (how == start::join) CHECK(seen.ranks[0].exit_status == 7);
    }
}

TEST_CASE("on_failure: each of several threads that are ranks is told") {
    std::atomic<int> calls{0};
    herring::launch_options options;
    options.on_failure = [&](failure const& why) {
        calls.fetch_add(why.peer == 1 || why.reporter == 1 ? 1 : 100);
    };
    try {
        herring::launch_threads(
            3,
            [&](world& w) {
                w.barrier();
                if (w.rank() == 1) throw std::runtime_error("on purpose");
                await(calls, 3);
            },
            options);
        FAIL("it throws");
    } catch (std::runtime_error const&) {
    }
    CHECK(calls.load() == 3);
}

TEST_CASE("on_failure: alone") {
    int calls = 0;
    herring::join_options options;
    options.rank = 0;
    options.size = 1;
    options.on_failure = [&](failure const&) { ++calls; };
    world w = herring::join(options);
    w.fail(failure::make(errc::device, 0, -1, "test", "on purpose"));
    w.fail(failure::make(errc::device, 0, -1, "test", "twice"));
    CHECK(calls == 1);
}
