// herring: a process that is stopped is noticed whatever the others do, named by all, and told so if it goes on.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/progress/thread.hpp"

#include <random>
#include <thread>

using namespace fault;

namespace {

/// A rank that stops is dead after 5 s; the rest is slack for busy machines.
constexpr milliseconds noticed{7'500};

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

void play_stop(place const& where, start how, phase at, int victim, std::mt19937& random) {
    setup s;
    s.how = how;
    s.ranks = where.ranks;
    if (where.two) s.nodes = two_nodes(where.ranks);
    s.name = std::string(where.name) + ", stopped " + to_string(at);
    std::chrono::microseconds const delay(random() % 30'000);
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
    check_named(s, seen, victim, {errc::peer_lost}, noticed);
    INFO(seen.text());
    for (int r = 0; r < s.ranks; ++r)
        if (r != victim) CHECK(seen.ranks[static_cast<std::size_t>(r)].after_ms > 3'500);
    auto const& told = seen.ranks[static_cast<std::size_t>(victim)];
    CHECK(told.how == state::error);
    CHECK(told.why.peer == victim);
    CHECK(std::strstr(told.why.text, "given up") != nullptr);
    std::printf("[stopped] %-14s %-6s rank %d of %d %s: %.0f ms to the last error; it is told \"%.60s...\"\n",
                where.name, to_string(how).c_str(), victim, s.ranks, to_string(at), seen.slowest_ms(victim),
                told.why.text);
}

unsigned seed(unsigned usual) {
    char const* const other = std::getenv("FAULT_SEED");
    return other != nullptr ? static_cast<unsigned>(std::atoi(other)) : usual;
}

} // namespace

TEST_CASE("stopped: nobody waits with a deadline, and everyone hears of it after five seconds; so does it") {
    std::mt19937 random(seed(1));
    play_stop(by_tcp, start::join, phase::computing, 2, random);
    play_stop(by_tcp, start::join, phase::in_step, 0, random);
    play_stop(by_tcp, start::launch, phase::in_step, 1, random);
    play_stop(on_one_node, start::join, phase::computing, 0, random);
    play_stop(on_one_node, start::launch, phase::computing, 0, random);
    play_stop(on_one_node, start::join, phase::in_step, 1, random);
    play_stop(on_one_node, start::launch, phase::barrier, 2, random);
    play_stop(on_two_nodes, start::join, phase::barrier, 1, random);
    play_stop(on_two_nodes, start::join, phase::in_step, static_cast<int>(random() % 4), random);
    play_stop(on_two_nodes, start::launch, phase::in_background, static_cast<int>(random() % 4), random);
    play_stop(by_tcp, start::join, phase::in_background, 0, random);
}

namespace {

/// The victim is stopped for three seconds in the middle of its work; all end well.
void goes_on(place const& where, start how, int victim) {
    setup s;
    s.how = how;
    s.ranks = where.ranks;
    if (where.two) s.nodes = two_nodes(where.ranks);
    s.name = std::string(where.name) + ": stopped for a while";
    report const seen = play(s, [&](world& w, board& b) {
        auto const body = [&](auto* which) {
            using reducer = std::remove_pointer_t<decltype(which)>;
            reducer reduce(w, layout{{"first", 1'000'000}, {"small", 500}});
            step(reduce, w, 0);
            w.barrier();
            if (w.rank() == victim) stop_after(b, std::chrono::microseconds(500));
            if (w.rank() == (victim + 1) % w.size()) {
                std::thread([&b, victim] {
                    std::this_thread::sleep_for(milliseconds(3'200)); // this is what it is about
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
    CHECK(seen.took_ms > 3'000);
}

} // namespace

TEST_CASE("stopped: a rank that goes on before five seconds have passed is missed by nobody") {
    goes_on(by_tcp, start::join, 0);
    goes_on(by_tcp, start::join, 1);
    goes_on(on_one_node, start::launch, 1);
    goes_on(on_two_nodes, start::join, 3);
}

TEST_CASE("stopped: a rank whose own deadline passes meanwhile accuses nobody") {
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
                reduce.wait(clock::now() + milliseconds(1'500 * slower)).value();
                verify(reduce, w, 1);
                return;
            }
            if (w.rank() == 0) {
                await(b.struck_ns, 1);
                std::this_thread::sleep_for(milliseconds(3'000)); // this is what it is about
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
