// herring: servers of their own: one that dies, a worker that dies, is in another call or another role, is named to all others.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/placement/placement.hpp"
#include "herring/serve.hpp"
#include "herring/training.hpp"

#include <limits>
#include <thread>
#include <utility>

using namespace fault;
using herring::role;

namespace {

using served = flat_of<herring::placement::dedicated>;
using served_on_nodes = flat_of<herring::placement::dedicated, herring::intra_node::shared_memory>;
using trainer = flat_of<herring::placement::dedicated, herring::optimizer::adamw>;

/// Workers and servers, in the order of ranks: 'w' and 's'.
setup scene_of(std::string const& ranks, std::string name, start how = start::launch) {
    setup s;
    s.how = how;
    s.ranks = static_cast<int>(ranks.size());
    for (char const c : ranks) s.roles.push_back(c == 's' ? role::server : role::worker);
    s.name = std::move(name) + ", " + ranks;
    return s;
}

layout const small{{"a", 1000}, {"b", 3}, {"c", 40'000}};

/// A worker's step with checked results.
template <class Reducer> void step_of_workers(Reducer& reduce, world const& w, int number) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        std::span<float> const t = reduce.tensor(i);
        std::fill(t.begin(), t.end(), value_of(w.worker(), number, i));
        reduce.ready(i);
    }
    reduce.wait();
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        std::span<float const> const t = reduce.tensor(i);
        float const due = sum_of(w.workers(), number, i);
        require(std::all_of(t.begin(), t.end(), [due](float x) { return x == due; }), "sums");
    }
}

enum class moment { idle, small_steps, in_flight };
constexpr moment moments[] = {moment::idle, moment::small_steps, moment::in_flight};

constexpr char const* to_string(moment m) {
    return m == moment::idle ? "idle" : m == moment::small_steps ? "small steps" : "64 MiB in flight";
}

template <class Reducer> void is_killed(std::string const& ranks, int victim, start how) {
    for (moment const at : moments) {
        setup const s = scene_of(
            ranks, std::string("rank ") + std::to_string(victim) + " is killed, " + to_string(at), how);
        report const seen = play(s, [&](world& w, board& b) {
            layout const tensors = at == moment::in_flight ? layout{{"large", 16u << 20}} : small;
            bool const dies = w.rank() == victim;
            std::thread killer;
            if (dies)
                killer = std::thread([&] {
                    // The first steps are over on some worker; then any moment.
                    await(b.steps, at == moment::in_flight ? 1 : 3);
                    std::this_thread::sleep_for(milliseconds(at == moment::idle ? 30 : 7));
                    b.die();
                });
            if (w.role() == role::server) {
                herring::serve<Reducer>(w, tensors);
            } else {
                Reducer reduce(w, tensors);
                for (int number = 0;; ++number) {
                    if (at == moment::idle && number == 3) {
                        w.barrier(); // nobody is in a call: servers await one, and workers what never comes
                        throw std::runtime_error("the barrier of workers alone ended");
                    }
                    if (at == moment::in_flight) b.steps.fetch_add(1);
                    step_of_workers(reduce, w, number);
                    if (at != moment::in_flight) b.steps.fetch_add(1);
                }
            }
            if (dies) killer.join();
        });
        check_named(s, seen, victim, {errc::peer_lost});
    }
}

/// All ranks end in an error of this code about `victim`, which has these words.
void check_words(setup const& s, report const& seen, int victim, errc code, std::string const& words) {
    INFO(s.name << "\n" << seen.text());
    for (int r = 0; r < s.ranks; ++r) {
        CAPTURE(r);
        report::one const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        CHECK(one.why.what == code);
        if (r != victim) CHECK(one.why.peer == victim);
        if (r != victim) CHECK(std::string(one.why.text).find(words) != std::string::npos);
    }
}

} // namespace

TEST_CASE("dedicated: a server that is killed is named") {
    is_killed<served>("wwss", 2, start::launch);
    is_killed<served>("swws", 0, start::join);
}
TEST_CASE("dedicated: a worker that is killed is named") {
    is_killed<served_on_nodes>("wwws", 1, start::launch);
    is_killed<served>("sws", 1, start::join);
}

namespace {
/// An optimizer in two phases, of which one rank dies in step 2: between the phases, or in the second one.
struct dying {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "dying";
    static constexpr herring::optimizer_facts facts{.tensor_norms = true};
    static inline board* dies = nullptr; // of this process, if it is the one
    static inline bool between = false;
    struct hyper {
        double rate = 0.5;
    };
    struct numbers {
        float rate;
        bool last;
    };
    template <class Number> static numbers prepare(hyper const& values, std::uint64_t step) noexcept {
        return {static_cast<float>(values.rate), step == 2};
    }
    template <class Number>
    static Number direction(Number, Number gradient, Number*, numbers const& with) noexcept {
        if (between && with.last && dies != nullptr) dies->die();
        return gradient;
    }
    static numbers adapt(numbers const& with, herring::tensor_norms const&) noexcept { return with; }
    template <class Number>
    static void step(Number& weight, Number direction, Number*, numbers const& with) noexcept {
        if (!between && with.last && dies != nullptr) dies->die();
        weight = weight - direction * with.rate;
    }
};
} // namespace

TEST_CASE("dedicated: a server that dies between the two phases of a step, or in the second, is named") {
    using trainer_of_two = flat_of<herring::placement::dedicated, herring::optimizer::clipped<dying>>;
    for (bool const between : {true, false})
        for (std::string const ranks : {"wwss", "sws"}) {
            int const victim = ranks == "wwss" ? 3 : 0;
            setup const s = scene_of(ranks, between ? "between the phases" : "in the second phase");
            report const seen = play(s, [&](world& w, board& b) {
                dying::between = between;
                if (w.rank() == victim) dying::dies = &b;
                if (w.role() == role::server) return herring::serve<trainer_of_two>(w, small);
                trainer_of_two train(w, small);
                train.start(static_cast<int>(ranks.find('w')), [](std::size_t, std::span<float> into) {
                    std::fill(into.begin(), into.end(), 1.0f);
                });
                for (int number = 0; number < 2; ++number) {
                    for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
                    train.wait();
                }
                throw std::runtime_error("the step of a dead server ended");
            });
            check_named(s, seen, victim, {errc::peer_lost});
        }
}

TEST_CASE("dedicated: a worker that is killed between the two phases is named, to the servers too") {
    using trainer_of_two =
        flat_of<herring::placement::dedicated, herring::optimizer::clipped<herring::optimizer::adamw>>;
    setup const s = scene_of("wsw", "the last gradient is not ready");
    report const seen = play(s, [&](world& w, board& b) {
        if (w.role() == role::server) return herring::serve<trainer_of_two>(w, small);
        trainer_of_two train(w, small);
        train.start(0, [](std::size_t, std::span<float> into) { std::fill(into.begin(), into.end(), 1.0f); });
        for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
        if (w.rank() == 2) {
            while (!train.done()) ::sched_yield(); // all gradients are summed, and it never asks for the norm
            b.die();
        }
        train.wait();
        throw std::runtime_error("the step of a dead worker ended");
    });
    check_named(s, seen, 2, {errc::peer_lost});
}

TEST_CASE("dedicated: a gradient that is not finite is named by the server that has summed it") {
    using trainer_of_two =
        flat_of<herring::placement::dedicated, herring::optimizer::clipped<herring::optimizer::adamw>>;
    setup const s = scene_of("wsws", "not finite");
    report const seen = play(s, [&](world& w, board&) {
        if (w.role() == role::server) return herring::serve<trainer_of_two>(w, small);
        trainer_of_two train(w, small);
        train.start(0, [](std::size_t, std::span<float> into) { std::fill(into.begin(), into.end(), 1.0f); });
        if (w.rank() == 2) train.tensor(2)[39'999] = std::numeric_limits<float>::infinity();
        for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
        train.wait();
    });
    INFO(seen.text());
    for (int r = 0; r < s.ranks; ++r) {
        report::one const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        CHECK(one.why.what == (r == 3 ? errc::bad_argument : errc::peer_failed));
        if (r != 3) CHECK(one.why.peer == 3); // the server of the last element
        CHECK(std::string(one.why.text)
                  .find("the gradient of tensor 2 ('c') is not finite, at element 39999") !=
              std::string::npos);
    }
}

TEST_CASE("dedicated: a worker that never comes is named at the others' deadline, and the server ends too") {
    setup const s = scene_of("wsww", "a worker never calls");
    report const seen = play(s, [&](world& w, board& b) {
        if (w.role() == role::server) return herring::serve<served>(w, small);
        served reduce(w, small);
        step_of_workers(reduce, w, 0);
        if (w.rank() == 2) {
            outlast(b, 3);
            ::kill(::getpid(), SIGKILL);
        }
        b.strike();
        for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
        reduce.wait(milliseconds(150 * slower)).value();
    });
    check_named(s, seen, 2, {errc::timeout}, milliseconds(2'500));
}

TEST_CASE("dedicated: nobody has a deadline while no step is open, nor while workers compute in one") {
    setup s = scene_of("wws", "pauses above the default timeout");
    // On a loaded machine one worker wakes much later than the other.
    s.default_timeout = milliseconds(500 * slower);
    report const seen = play(s, [&](world& w, board&) {
        if (w.role() == role::server) return herring::serve<served>(w, small);
        served reduce(w, small);
        for (int number = 0; number < 2; ++number) {
            std::this_thread::sleep_for(milliseconds(700 * slower)); // a pause is what is tested
            reduce.ready(0);
            std::this_thread::sleep_for(milliseconds(700 * slower));
            reduce.ready(1);
            reduce.ready(2);
            reduce.wait();
        }
    });
    for (report::one const& one : seen.ranks) CHECK(one.how == state::done);
}

TEST_CASE("dedicated: a worker in another call is named, with both calls") {
    struct difference {
        char const* name;
        int kind;
        char const* words;
    };
    for (difference const& d :
         {difference{"a collective in place of a step", 0,
                     "it is in all_reduce of 1000 elements, and rank 0 is in a step"},
          difference{"another size", 1,
                     "it is in all_reduce of 999 elements, and rank 0 is in all_reduce of 1000"},
          difference{"it left", 2, "its reducer was destroyed, and rank 0 is in a step"}}) {
        setup const s = scene_of("wssw", d.name);
        report const seen = play(s, [&](world& w, board& b) {
            if (w.role() == role::server) return herring::serve<served>(w, small);
            bool const differs = w.rank() == 3;
            std::vector<float> buffer(d.kind == 1 && differs ? 999 : 1000);
            {
                served reduce(w, small);
                step_of_workers(reduce, w, 0);
                b.strike();
                if (differs && d.kind == 2) {
                } else if (d.kind == 1 || (differs && d.kind == 0)) {
                    reduce.all_reduce(buffer);
                } else {
                    step_of_workers(reduce, w, 1);
                }
            }
            if (differs) outlast(b, 3); // after it has destroyed its reducer
            w.check();
        });
        check_words(s, seen, 3, errc::mismatch, d.words);
    }
}

TEST_CASE("dedicated: a worker with other hyper values is named, with both values") {
    setup const s = scene_of("wsw", "another rate");
    report const seen = play(s, [&](world& w, board&) {
        if (w.role() == role::server) return herring::serve<trainer>(w, small);
        trainer train(w, small);
        train.start(0, [](std::size_t, std::span<float> into) { std::fill(into.begin(), into.end(), 1.0f); });
        auto values = train.hyper();
        values.rate = w.rank() == 2 ? 0.5 : 0.25;
        train.set(values);
        for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
        train.wait();
    });
    check_words(s, seen, 2, errc::mismatch, "hyper::rate is 0.5 on rank 2 and 0.25 on rank 0");
}

TEST_CASE("dedicated: a barrier of the world while servers serve is told that the server serves") {
    for (start const how : {start::launch, start::join}) {
        setup const s = scene_of("wsw", "a barrier", how);
        report const seen = play(s, [&](world& w, board&) {
            if (w.role() == role::server) return herring::serve<served>(w, small);
            served reduce(w, small);
            w.barrier(milliseconds(3'000));
        });
        INFO(seen.text());
        for (std::size_t const rank : {0u, 2u}) {
            // Which end of the wait is named depends on who looks first.
            CHECK((seen.ranks[rank].why.peer >= 0 && seen.ranks[rank].why.peer <= 2));
            CHECK(std::string(seen.ranks[rank].why.text)
                      .find("rank 1 is a server: if it serves, it is in no barrier and no construction") !=
                  std::string::npos);
        }
    }
}

TEST_CASE("dedicated: ranks whose roles are others than the plan's are told what to do") {
    auto const play_roles = [](std::string const& ranks, char const* name, auto const& part) {
        setup const s = scene_of(ranks, name, start::join);
        return std::pair(s, play(s, [&](world& w, board&) { part(w); }));
    };
    auto const has = [](report const& seen, int rank, errc code, char const* words) {
        INFO(seen.text());
        report::one const& one = seen.ranks[static_cast<std::size_t>(rank)];
        CHECK(one.how == state::error);
        CHECK(one.why.what == code);
        CHECK(std::string(one.why.text).find(words) != std::string::npos);
    };
    auto const constructed =
        play_roles("wws", "a server constructs", [](world& w) { served reduce(w, small); });
    has(constructed.second, 2, errc::bad_state,
        "this rank is a server, which has no tensors: let it call herring::serve");
    check_named(constructed.first, constructed.second, 2, {errc::bad_state, errc::peer_failed});

    auto const serving = play_roles("wws", "a worker serves", [](world& w) {
        if (w.rank() == 0) {
            served reduce(w, small);
        } else {
            herring::serve<served>(w, small);
        }
    });
    has(serving.second, 1, errc::bad_state, "this rank is a worker: let it construct the reducer");

    auto const colocated =
        play_roles("wws", "colocated with a server", [](world& w) { flat reduce(w, small); });
    for (int r = 0; r < 2; ++r)
        has(colocated.second, r, errc::bad_argument, "by placement 'colocated' workers do all of the work");

    auto const alone = play_roles("ww", "no server", [](world& w) { served reduce(w, small); });
    for (int r = 0; r < 2; ++r)
        has(alone.second, r, errc::bad_argument, "there is no server in the world of 2 ranks");

    auto const nobody = play_roles("ss", "no worker", [](world& w) { herring::serve<served>(w, small); });
    for (int r = 0; r < 2; ++r) has(nobody.second, r, errc::bad_argument, "all 2 ranks are servers");
}

TEST_CASE("dedicated: another layout, policy or optimizer at a server is named") {
    auto const differs = [](char const* name, char const* words, auto const& serve) {
        setup const s = scene_of("wsw", name);
        report const seen = play(s, [&](world& w, board&) {
            if (w.role() == role::server) return serve(w);
            trainer train(w, small);
        });
        check_words(s, seen, 1, errc::mismatch, words);
    };
    differs("another layout", "tensor 1=b of 4", [](world& w) {
        herring::serve<trainer>(w, layout{{"a", 1000}, {"b", 4}, {"c", 40'000}});
    });
    differs("another optimizer", "optimizer=", [](world& w) {
        herring::serve<flat_of<herring::placement::dedicated, herring::optimizer::momentum>>(w, small);
    });
    differs("no optimizer", "optimizer=", [](world& w) { herring::serve<served>(w, small); });
}

TEST_CASE("dedicated: a root that is a server is a misuse, and the world goes on") {
    setup const s = scene_of("sww", "the root is a server");
    report const seen = play(s, [&](world& w, board&) {
        if (w.role() == role::server) return herring::serve<trainer>(w, small);
        trainer train(w, small);
        auto const one = [](std::size_t, std::span<float> into) {
            std::fill(into.begin(), into.end(), 1.0f);
        };
        bool refused = false;
        try {
            train.start(0, one);
        } catch (herring::error const& why) {
            refused = why.code() == errc::bad_argument &&
                      std::string(why.what()).find("rank 0 is a server") != std::string::npos;
        }
        require(refused, "a root that is a server is refused");
        train.start(1, one);
    });
    for (report::one const& one : seen.ranks) CHECK(one.how == state::done);
}
