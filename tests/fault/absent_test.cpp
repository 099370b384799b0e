// herring: a rank that is alive and does not call, or is stopped, is named at the deadline, and nobody else is.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sharding/sharding.hpp"
#include "scene.hpp"

#include <random>
#include <thread>

using namespace fault;

namespace {

constexpr milliseconds patience{600 * slower}; // where the others have something to do meanwhile
constexpr milliseconds impatience{200 * slower};
// What is known only from others takes somewhat longer than the deadline.
constexpr milliseconds in_time{2'500};

using naive = flat_of<herring::sharding::whole_tensor>;

/// Stays until the others have ended, as a rank that hangs does; then goes without a word.
[[noreturn]] void hang(world& w, board& b) {
    outlast(b, w.size() - 1);
    ::kill(::getpid(), SIGKILL);
    std::abort();
}

/// The last one of the others takes a stopped rank away, so that the scene ends.
void remove(world const& w, board& b, int victim) {
    if (b.entered.fetch_add(1) + 1 == w.size() - 1) ::kill(b.ranks[victim].pid.load(), SIGKILL);
}

/// One step with a deadline of its own; throws what ended it.
template <class Reducer> void step_within(Reducer& r, world const& w, int number, milliseconds time) {
    for (std::size_t i = 0; i < r.size(); ++i) {
        fill(r, w, number, i);
        r.ready(i);
    }
    r.wait(clock::now() + time).value();
    verify(r, w, number);
}

template <class Reducer>
double never_calls(char const* name, int ranks, bool two, layout const& tensors, start how, int victim) {
    setup s;
    s.how = how;
    s.ranks = ranks;
    if (two) s.nodes = two_nodes(ranks);
    s.name = std::string(name) + ": a rank that never calls";
    report const seen = play(s, [&](world& w, board& b) {
        Reducer reduce(w, tensors);
        step(reduce, w, 0);
        if (w.rank() == victim) hang(w, b);
        b.strike();
        step_within(reduce, w, 1, impatience);
    });
    check_named(s, seen, victim, {errc::timeout}, in_time);
    for (int r = 0; r < ranks; ++r)
        if (r != victim)
            CHECK(seen.ranks[static_cast<std::size_t>(r)].after_ms >=
                  0.8 * static_cast<double>(impatience.count()));
    return seen.slowest_ms(victim);
}

layout const small{{"a", 100}, {"b", 3'000}};                    // one hop, or a mailbox
layout const large{{"a", 700'001}, {"b", 3'000}, {"c", 90'000}}; // two hops, then one

template <class Reducer> void never_calls_anywhere(char const* name, bool two) {
    std::string line;
    int turn = 0;
    for (int ranks = two ? 3 : 2; ranks <= 4; ++ranks) {
        for (layout const* tensors : {&small, &large}) {
            int const victim = (turn * 2 + ranks - 1) % ranks; // each rank has its turn
            double const ms = never_calls<Reducer>(name, ranks, two, *tensors,
                                                   turn % 2 == 0 ? start::launch : start::join, victim);
            ++turn;
            char text[64];
            std::snprintf(text, sizeof text, "  rank %d of %d: %.0f", victim, ranks, ms);
            line += text;
        }
    }
    std::printf("[absent] %-16s ms to the last error, deadline at %d:%s\n", name,
                static_cast<int>(impatience.count()), line.c_str());
}

} // namespace

TEST_CASE("absent: over tcp") { never_calls_anywhere<flat>("tcp", false); }
TEST_CASE("absent: over shared memory") { never_calls_anywhere<shared>("shared memory", false); }
TEST_CASE("absent: two nodes") { never_calls_anywhere<shared>("two nodes", true); }

TEST_CASE("absent: a rank waits for a server that itself waits for the absent one") {
    // One tensor has one server: ranks 0, 1 and 2 need its sum only, and the server alone needs rank 3's part.
    layout const one{{"a", 700'001}};
    for (int const victim : {3, 2, 0}) {
        double const ms = never_calls<naive>("whole tensor", 4, false, one,
                                             victim == 2 ? start::join : start::launch, victim);
        std::printf("[absent] one server, rank %d of 4 never calls: %.0f ms\n", victim, ms);
    }
}

namespace {

/// Rank `victim` never calls, the one rank `hurried` has a deadline that passes: everyone hears of the victim.
template <class Reducer>
void one_is_in_a_hurry(char const* name, start how, bool two, layout const& tensors, int victim,
                       int hurried) {
    setup s;
    s.how = how;
    s.ranks = 4;
    if (two) s.nodes = two_nodes(4);
    s.name = std::string(name) + ": different deadlines";
    report const seen = play(s, [&](world& w, board& b) {
        Reducer reduce(w, tensors);
        step(reduce, w, 0);
        if (w.rank() == victim) hang(w, b);
        b.strike();
        step_within(reduce, w, 1, w.rank() == hurried ? impatience : milliseconds(20'000));
    });
    CAPTURE(hurried);
    check_named(s, seen, victim, {errc::timeout}, in_time);
}

} // namespace

TEST_CASE("absent: ranks wait with different deadlines, and the shortest one names the right rank") {
    one_is_in_a_hurry<flat>("tcp", start::launch, false, large, 3, 1);
    one_is_in_a_hurry<flat>("tcp", start::join, false, large, 0, 2);
    // From the other node, and from the victim's own.
    one_is_in_a_hurry<shared>("two nodes", start::launch, true, large, 3, 0);
    one_is_in_a_hurry<shared>("two nodes", start::join, true, large, 1, 2);
    one_is_in_a_hurry<shared>("two nodes", start::join, true, large, 3, 2);
}

TEST_CASE("absent: with one server, who is in a hurry waits for a server that itself waits") {
    layout const one{{"a", 700'001}};
    int turn = 0;
    for (int const victim : {3, 0}) {
        for (int hurried = 0; hurried < 4; ++hurried)
            if (hurried != victim)
                one_is_in_a_hurry<naive>("whole tensor", turn++ % 2 == 0 ? start::launch : start::join, false,
                                         one, victim, hurried);
    }
}

namespace {

/// Plays steps of 32 MB until `victim` is stopped after `delay`, and those that wait give it up.
report stop_one(setup const& s, bool on_nodes, int victim, std::chrono::microseconds delay) {
    auto const body = [&](auto* which, world& w, board& b) {
        using reducer = std::remove_pointer_t<decltype(which)>;
        reducer reduce(w, layout{{"first", 4'000'000}, {"small", 500}, {"second", 4'000'000}});
        step(reduce, w, 0);
        if (w.rank() == victim)
            std::thread([&b, delay] {
                std::this_thread::sleep_for(delay); // waits for nothing: makes the moment arbitrary
                b.strike();
                ::kill(::getpid(), SIGSTOP);
            }).detach();
        try {
            for (int n = 1;; ++n) step_within(reduce, w, n, patience);
        } catch (herring::error const&) {
            remove(w, b, victim);
            throw;
        }
    };
    return play(s, [&](world& w, board& b) {
        if (on_nodes)
            body(static_cast<shared*>(nullptr), w, b);
        else
            body(static_cast<flat*>(nullptr), w, b);
    });
}

unsigned seed(unsigned usual) {
    char const* const other = std::getenv("FAULT_SEED");
    return other != nullptr ? static_cast<unsigned>(std::atoi(other)) : usual;
}

} // namespace

TEST_CASE("absent: a rank that is stopped in the middle of its work") {
    std::mt19937 random(seed(7));
    struct {
        char const* name;
        int ranks;
        bool on_nodes, two;
        start how;
    } const cases[] = {
        {"tcp", 2, false, false, start::launch},          {"tcp", 4, false, false, start::join},
        {"shared memory", 3, true, false, start::launch}, {"shared memory", 2, true, false, start::join},
        {"two nodes", 4, true, true, start::launch},      {"two nodes", 4, true, true, start::join},
        {"two nodes", 4, true, true, start::launch},      {"two nodes", 4, true, true, start::join}};
    for (auto const& c : cases) {
        setup s;
        s.how = c.how;
        s.ranks = c.ranks;
        if (c.two) s.nodes = two_nodes(c.ranks);
        s.name = std::string(c.name) + ": a rank is stopped";
        s.failure_detector.reply_timeout = milliseconds(1'000 * slower);
        int const victim = static_cast<int>(random() % static_cast<unsigned>(c.ranks));
        report const seen = stop_one(s, c.on_nodes, victim, std::chrono::microseconds(random() % 40'000));
        check_named(s, seen, victim, {errc::timeout}, in_time);
        std::printf("[absent] %-16s rank %d of %d stopped: %.0f ms to the last error, deadline at %d\n",
                    c.name, victim, c.ranks, seen.slowest_ms(victim), static_cast<int>(patience.count()));
    }
}

TEST_CASE("absent: rank 0, which leads what join makes, is stopped: everyone notices without it") {
    std::mt19937 random(seed(9));
    for (bool const two : {false, true}) {
        setup s;
        s.how = start::join;
        s.ranks = 4;
        if (two) s.nodes = two_nodes(4);
        s.name = "rank 0 is stopped";
        s.failure_detector.reply_timeout = milliseconds(1'000 * slower);
        report const seen = stop_one(s, two, 0, std::chrono::microseconds(random() % 40'000));
        // Who waits in vain for one that has given up and left finds that rank 0 does not tell why: a loss, not a timeout.
        check_named(s, seen, 0, {errc::timeout, errc::peer_lost}, in_time);
    }
}
