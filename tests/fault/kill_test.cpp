// herring: a rank that is killed, at every phase of its life, is named to all others within a second.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <random>
#include <thread>

using namespace fault;

namespace {

enum class phase { construction, idle, before_ready, between_buckets, in_wait, in_flight };
constexpr phase phases[] = {phase::construction,    phase::idle,    phase::before_ready,
                            phase::between_buckets, phase::in_wait, phase::in_flight};

constexpr char const* to_string(phase p) {
    switch (p) {
    case phase::construction:
        return "in construction";
    case phase::idle:
        return "idle";
    case phase::before_ready:
        return "before ready";
    case phase::between_buckets:
        return "between buckets";
    case phase::in_wait:
        return "in wait, small steps";
    case phase::in_flight:
        return "64 MiB in flight";
    }
    return "?";
}

/// Kills this process from a thread, so that it may be anywhere in its work.
void die_after(board& b, std::chrono::microseconds delay) {
    std::thread([&b, delay] {
        std::this_thread::sleep_for(delay); // waits for nothing: makes the moment arbitrary
        b.die();
    }).detach();
}

layout layout_for(phase p) {
    constexpr std::size_t half = (32u << 20) / sizeof(float);
    return p == phase::in_flight ? layout{{"first half", half}, {"second half", half}} : mixed_layout();
}

/// Steps until an error ends it; every later call must throw the same.
template <class Reducer>
void live_and_die(world& w, board& b, phase at, int victim, std::chrono::microseconds delay) {
    bool const dies = w.rank() == victim;
    w.barrier();
    if (at == phase::construction && dies) {
        if (delay.count() == 0) b.die();
        die_after(b, delay);
    }
    Reducer reduce(w, layout_for(at));
    std::size_t const half = reduce.size() / 2;
    try {
        int number = 0;
        if (at != phase::construction) step(reduce, w, number++);
        if (at == phase::construction && !dies) await(b.struck_ns, 1);
        switch (at) {
        case phase::idle:
            if (dies) b.die();
            await(b.struck_ns, 1);
            break;
        case phase::before_ready:
        case phase::between_buckets:
            for (std::size_t i = 0; i < reduce.size(); ++i) {
                if (dies && at == phase::before_ready) break;
                if (dies && i == half) break;
                fill(reduce, w, number, i);
                reduce.ready(i);
            }
            if (dies) {
                await(b.entered, w.size() - 1);
                b.die();
            }
            b.entered.fetch_add(1);
            reduce.wait();
            require(false, "wait ends in an error");
            break;
        case phase::in_wait:
        case phase::in_flight:
            if (dies) die_after(b, delay);
            break;
        case phase::construction:
            break;
        }
        while (true) step(reduce, w, number++);
    } catch (herring::error const& first) {
        for (int again = 0; again < 2; ++again) {
            try {
                std::vector<float> values(100);
                reduce.all_reduce(values);
                require(false, "a call after a failure throws");
            } catch (herring::error const& second) {
                require(second.code() == first.code() && second.peer() == first.peer(),
                        std::string("the same error again, not ") + second.what());
            }
        }
        throw;
    }
}

struct place {
    char const* name;
    bool on_nodes; // shared memory
    bool two;      // nodes
};

template <class Reducer> void play_all(place const& where, unsigned seed) {
    // Another seed plays it at other moments.
    char const* const other = std::getenv("FAULT_SEED");
    std::mt19937 random(other != nullptr ? seed + static_cast<unsigned>(std::atoi(other)) * 10 : seed);
    for (start const how : {start::launch, start::join}) {
        double most = 0;
        std::string line;
        int turn = 0;
        for (phase const at : phases) {
            setup s;
            s.how = how;
            s.ranks = where.two ? (turn % 3 == 1 ? 3 : 4) : 2 + turn % 3;
            if (where.two) s.nodes = two_nodes(s.ranks);
            s.name = std::string(where.name) + ", killed " + to_string(at);
            // Rank 0 leads what join makes: it has its turn as well.
            int const victim = turn % 2 == 0 ? s.ranks - 1 - turn / 2 % 2 : turn / 2 % 2;
            ++turn;
            std::chrono::microseconds const delay(
                at == phase::construction ? (how == start::launch ? 0 : 1'500)
                : at == phase::in_flight  ? static_cast<long>(random() % 60'000)
                                          : static_cast<long>(random() % 8'000));
            report const seen =
                play(s, [&](world& w, board& b) { live_and_die<Reducer>(w, b, at, victim, delay); });
            check_named(s, seen, victim, {errc::peer_lost});
            char text[80];
            std::snprintf(text, sizeof text, "  %s: %.0f", to_string(at), seen.slowest_ms(victim));
            line += text;
            most = std::max(most, seen.slowest_ms(victim));
        }
        std::printf("[kill] %-24s %-6s ms to the last error:%s; most %.0f\n", where.name,
                    how == start::launch ? "launch" : "join", line.c_str(), most);
    }
}

} // namespace

TEST_CASE("kill: over tcp, every rank a node of its own") { play_all<flat>({"tcp", false, false}, 1); }
TEST_CASE("kill: over shared memory, one node") { play_all<shared>({"shared memory", true, false}, 2); }
TEST_CASE("kill: over both, two nodes") { play_all<shared>({"two nodes", true, true}, 3); }

TEST_CASE("kill: two ranks at once: the others name one of them") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 4;
        s.nodes = two_nodes(4);
        s.name = "two killed at once";
        report const seen = play(s, [](world& w, board& b) {
            shared reduce(w, mixed_layout());
            step(reduce, w, 0);
            if (w.rank() % 2 == 1) b.die();
            for (int n = 1;; ++n) step(reduce, w, n);
        });
        INFO(seen.text());
        for (int const r : {0, 2}) {
            auto const& one = seen.ranks[static_cast<std::size_t>(r)];
            CHECK(one.how == state::error);
            CHECK(one.why.what == errc::peer_lost);
            CHECK((one.why.peer == 1 || one.why.peer == 3));
            CHECK(one.after_ms <= static_cast<double>(promptly.count() * slower));
        }
    }
}
