// herring: a rank that waits long costs next to no processor time; failures reach a progress thread as well.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/progress/progress.hpp"
#include "herring/waiting/waiting.hpp"

#include <thread>

using namespace fault;

namespace {

using herring::intra_node::shared_memory;

double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

struct place {
    char const* name;
    int ranks;
    bool two;
};
constexpr place by_tcp{"tcp", 3, false}, on_one_node{"shared memory", 3, false},
    on_two_nodes{"two nodes", 4, true};

/// The share of a core, in per mille, that each rank uses while it waits a second for the last one.
template <class Reducer>
void wait_for_a_late_one(char const* policies, place const& where, start how, std::size_t elements) {
    setup s;
    s.how = how;
    s.ranks = where.ranks;
    if (where.two) s.nodes = two_nodes(where.ranks);
    s.name = std::string(where.name) + ", " + policies + ", waits for a late rank";
    report const seen = play(s, [&](world& w, board& b) {
        Reducer reduce(w, layout{{"a", elements}, {"b", 1'000}});
        step(reduce, w, 0);
        w.barrier();
        if (w.rank() == w.size() - 1)
            std::this_thread::sleep_for(std::chrono::seconds(1)); // this is what it is about
        double const cpu = cpu_seconds();
        std::int64_t const from = now_ns();
        step(reduce, w, 1);
        double const took = milliseconds_since(from) * 1e-3;
        b.ranks[w.rank()].value.store(static_cast<long>((cpu_seconds() - cpu) / took * 1'000));
        if (w.rank() < w.size() - 1) require(took > 0.75, "it waits");
    });
    INFO(s.name << " over " << to_string(how) << "\n" << seen.text());
    long most = 0;
    for (int r = 0; r < s.ranks; ++r) {
        CHECK(seen.ranks[static_cast<std::size_t>(r)].how == state::done);
        if (r + 1 < s.ranks) most = std::max(most, seen.ranks[static_cast<std::size_t>(r)].value);
    }
    CHECK(most < 50); // 20 are promised
    std::printf("[idle] %-14s %-18s %-6s %7zu elements: at most %.1f %% of a core a waiting rank\n",
                where.name, policies, to_string(how).c_str(), elements, static_cast<double>(most) * 0.1);
}

template <class Reducer> void killed(char const* name, place const& where, int victim, start how) {
    setup s;
    s.how = how;
    s.ranks = where.ranks;
    if (where.two) s.nodes = two_nodes(where.ranks);
    s.name = std::string(name) + ": killed";
    report const seen = play(s, [&](world& w, board& b) {
        Reducer reduce(w, mixed_layout());
        step(reduce, w, 0);
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            if (w.rank() == victim && i == 3) {
                await(b.entered, w.size() - 1);
                b.die();
            }
            fill(reduce, w, 1, i);
            reduce.ready(i);
        }
        b.entered.fetch_add(1);
        reduce.wait();
        throw std::runtime_error("not so: the step ended well");
    });
    check_named(s, seen, victim, {errc::peer_lost});
    std::printf("[idle] %-14s progress::thread, killed in a step: %.0f ms to the last error\n", where.name,
                seen.slowest_ms(victim));
}

using background = herring::progress::thread;
using blocking = herring::waiting::block;

} // namespace

TEST_CASE("idle: waiting::block") {
    wait_for_a_late_one<flat_of<blocking>>("block", by_tcp, start::join, 500'000);
    wait_for_a_late_one<flat_of<blocking, shared_memory>>("block", on_one_node, start::launch, 500'000);
    wait_for_a_late_one<flat_of<blocking, shared_memory>>("block", on_two_nodes, start::launch, 500'000);
}

TEST_CASE("idle: waiting::adaptive") {
    wait_for_a_late_one<flat>("adaptive", by_tcp, start::launch, 500'000);
    wait_for_a_late_one<shared>("adaptive", on_one_node, start::join, 100);
    wait_for_a_late_one<shared>("adaptive", on_two_nodes, start::join, 500'000);
}

TEST_CASE("idle: progress::thread") {
    wait_for_a_late_one<flat_of<background>>("adaptive, thread", by_tcp, start::join, 500'000);
    wait_for_a_late_one<flat_of<background, shared_memory>>("adaptive, thread", on_two_nodes, start::launch,
                                                            500'000);
}

TEST_CASE("idle: a world that does nothing costs nothing but its signs of life") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 4;
        s.name = "a world that does nothing";
        report const seen = play(s, [](world& w, board& b) {
            w.barrier();
            double const cpu = cpu_seconds();
            std::int64_t const from = now_ns();
            std::this_thread::sleep_for(std::chrono::seconds(2)); // this is what it is about
            b.ranks[w.rank()].value.store(
                static_cast<long>((cpu_seconds() - cpu) / milliseconds_since(from) * 1e9));
        });
        INFO(s.name << " over " << to_string(how) << "\n" << seen.text());
        long most = 0; // millionths of a core
        for (auto const& one : seen.ranks) {
            CHECK(one.how == state::done);
            most = std::max(most, one.value);
        }
        CHECK(most < 5'000); // 1'000 are promised
        std::printf("[idle] a world of 4 that does nothing, %-6s: at most %.3f %% of a core a rank\n",
                    to_string(how).c_str(), static_cast<double>(most) * 1e-4);
    }
}

TEST_CASE("idle: a rank that is killed is named through a progress thread") {
    killed<flat_of<background>>("tcp", by_tcp, 1, start::launch);
    killed<flat_of<background>>("tcp", by_tcp, 0, start::join);
    killed<flat_of<background, shared_memory>>("shared memory", on_one_node, 2, start::join);
    killed<flat_of<background, shared_memory>>("two nodes", on_two_nodes, 0, start::launch);
    killed<flat_of<background, shared_memory>>("two nodes", on_two_nodes, 3, start::join);
}
