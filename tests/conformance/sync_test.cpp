// herring: every sync policy, over every route: what is due is averaged, the rest stays; misuse and cheating are told.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/sync_suite.hpp"

#include "conformance/dissemination_suite.hpp"
#include "conformance/loudest.hpp"
#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/progress/progress.hpp"
#include "herring/training.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

using namespace herring::conformance;
namespace sync_policies = herring::sync;
namespace update = herring::update;
using shared = herring::intra_node::shared_memory;
using per_tensor = herring::fusion::per_tensor;

namespace sync_conformance {

using threads = with_dear_messages<herring::transport::inproc>;
using sockets = with_dear_messages<herring::transport::tcp>;
using rough = herring::transport::chaos<
    threads, herring::transport::chaos_tuning{
                 .not_now_per_1000 = 250, .delay_per_1000 = 500, .hold_back_per_1000 = 400, .longest = 25}>;

using third = sync_policies::every<3>;
using warm = sync_policies::post_local<2, 3>;
template <int Ahead, bool PerBucket>
using picky = sync_policies::selective<sync_policies::selective_tuning{
    .threshold = 0.3f, .window = 2, .smoothing = 0.5f, .ahead = Ahead, .per_bucket = PerBucket}>;

template <class Transport, class Sync, class... More>
findings as_due(settings const& how = {}, std::size_t shapes = shapes_of_syncs.size()) {
    return sync_suite<herring::reducer<float, Transport, per_tensor, Sync, More...>,
                      herring::reducer<float, Transport, per_tensor, More...>>(how, shapes);
}

std::size_t const few = HERRING_TEST_SLOW ? 2 : 6;
std::size_t const some = HERRING_TEST_ASAN || HERRING_TEST_TSAN ? 2 : 4;
settings const processes{.start = ranks_as::processes};

} // namespace sync_conformance

using namespace sync_conformance;

TEST_CASE("sync: what is due is the mean, and the rest stays, by every route") {
    CHECK(text(as_due<threads, third, shared>({}, few)) == "");
    CHECK(text(as_due<threads, warm>({}, some)) == "");
    CHECK(text(as_due<threads, picky<1, true>, shared>({}, few)) == "");
    CHECK(text(as_due<threads, loudest>({}, few)) == "");
}

TEST_CASE("sync: decided behind the gradients, by the model's, with a thread of its own") {
    CHECK(text(as_due<threads, picky<0, false>, shared, herring::progress::thread>({}, some)) == "");
}

TEST_CASE("sync: doubles and 16-bit floats, whole models in one bucket") {
    CHECK(text(sync_suite<herring::reducer<double, threads, picky<1, false>, shared>,
                          herring::reducer<double, threads, shared>>({}, some)) == "");
    CHECK(text(sync_suite<herring::reducer<herring::bfloat16, threads, picky<0, true>, per_tensor, shared>,
                          herring::reducer<herring::bfloat16, threads, per_tensor, shared>>({}, some)) == "");
}

TEST_CASE("sync: what nodes do not exchange, their ranks do") {
    CHECK(text(as_due<threads, sync_policies::hierarchical<3>, shared>({}, few)) == "");
}

TEST_CASE("sync: an outer optimizer steps from the weights that all began with") {
    CHECK(text(as_due<threads, sync_policies::diloco<3, herring::optimizer::nesterov>, shared>({}, few)) ==
          "");
    CHECK(text(as_due<threads, sync_policies::diloco<2, herring::optimizer::adamw>>({}, some)) == "");
}

TEST_CASE("sync: between processes, over sockets and shared memory") {
    CHECK(text(as_due<sockets, third, shared>(processes, few)) == "");
    CHECK(text(as_due<sockets, picky<0, true>, shared>(processes, few)) == "");
    CHECK(text(as_due<sockets, sync_policies::diloco<3, herring::optimizer::nesterov>, shared>(processes,
                                                                                               2)) == "");
}

TEST_CASE("sync: messages in any order, refused and late") {
    CHECK(text(as_due<rough, picky<1, true>, shared>({}, some)) == "");
}

namespace sync_conformance {

/// What an error says, of a call that must throw one of this kind.
template <class Call> std::string refused(herring::errc what, Call const& call) {
    try {
        call();
    } catch (herring::error const& why) {
        return why.code() == what ? why.what() : "another error: " + std::string(why.what());
    }
    return "no error";
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

/// Decides by what it saw on its own rank.
template <bool Votes> struct cheat {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{.observes = true, .votes = Votes};
    void observe(std::size_t, double squares) noexcept { seen += squares; }
    sync_policies::ballot vote() noexcept requires(Votes) { return {}; }
    void agreed(sync_policies::ballot const&) noexcept { ++steps; }
    bool due(std::size_t bucket) const noexcept { return steps > 1 && (seen > 3) == (bucket == 0); }
    double seen = 0;
    int steps = 0;
};

template <class Lazy> void one_step(Lazy& lazy, float gradient) {
    for (std::size_t i = 0; i < lazy.size(); ++i) {
        for (float& one : lazy.tensor(i)) one = gradient;
        lazy.ready(i);
    }
    lazy.wait();
    for (std::size_t i = 0; i < lazy.size(); ++i) lazy.updated(i);
    lazy.settle();
}

} // namespace sync_conformance

TEST_CASE("sync: calls out of turn leave the step as it was") {
    using lazy_type = herring::reducer<float, threads, per_tensor, shared, sync_policies::every<2>>;
    for (auto const& nodes : {std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b"}})
        CHECK(
            text(run_case("misuse", 2, nodes, {}, [](auto& on) {
                lazy_type lazy(on.ranks, herring::layout{{"a", 10}, {"b", 20}});
                using herring::errc;
                auto const fill = [](std::size_t, std::span<float> into) {
                    for (float& one : into) one = 1;
                };
                on.expect(has(refused(errc::bad_argument, [&] { lazy.start(2, fill); }), "start"),
                          "a root that is not there");
                lazy.start(1, fill);
                on.expect(!lazy.synchronized(0), "no step was taken");
                for (int n = 0; n < 4; ++n) {
                    bool const due = n % 2 == 1;
                    on.expect(lazy.due(1) == due, "due at the begin");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.updated(0); }), "wait()"),
                              "updated early");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.settle(); }), "wait()"),
                              "settle early");
                    on.expect(has(refused(errc::bad_argument, [&] { lazy.ready(2); }), "2"), "ready(2)");
                    lazy.ready(1);
                    on.expect(has(refused(errc::bad_state, [&] { lazy.ready(1); }), "'b'"), "ready twice");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.wait(); }), "'a'"), "wait early");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.set({}); }), "set"), "set in a step");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.start(0, fill); }), "start"),
                              "start in a step");
                    std::vector<float> small(3);
                    on.expect(has(refused(errc::bad_argument,
                                          [&] { lazy.ready(0, std::span<float const>(small)); }),
                                  "3"),
                              "another size");
                    lazy.ready(0);
                    on.expect(lazy.wait() == (due ? herring::step::exchanged : herring::step::local), "wait");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.wait(); }), "settle"), "wait twice");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.ready(0); }), "settle"), "ready late");
                    on.expect(has(refused(errc::bad_argument, [&] { lazy.updated(2); }), "2"), "updated(2)");
                    on.expect(
                        has(refused(errc::bad_argument, [&] { lazy.updated(0, std::span<float>(small)); }),
                            "3"),
                        "weights of another size");
                    for (float& one : lazy.weights(0)) one += static_cast<float>(on.rank());
                    lazy.updated(0);
                    on.expect(has(refused(errc::bad_state, [&] { lazy.updated(0); }), "'a'"),
                              "updated twice");
                    on.expect(has(refused(errc::bad_state, [&] { lazy.settle(); }), "'b'"),
                              "settle without b");
                    lazy.updated(1);
                    lazy.settle();
                    on.expect(lazy.synchronized(0) == due && lazy.synchronized(1) == due, "synchronized");
                    float const steps = static_cast<float>(n + 1), own = static_cast<float>(on.rank());
                    float const expected = due ? 1 + steps / 2 : 1 + (steps - 1) / 2 + own;
                    on.expect(lazy.weights(0)[9] == expected,
                              "weights " + std::to_string(lazy.weights(0)[9]));
                }
                auto const state = lazy.state();
                one_step(lazy, 1);
                lazy.set(state);
                on.expect(!lazy.due(0), "the state is that of before");
                on.ranks.barrier();
            })) == "");
}

TEST_CASE("sync: a policy that decides by what one rank saw is found, and named") {
    for (auto const& nodes :
         {std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b", "c"}, {"a", "a", "b"}}) {
        auto const ranks = static_cast<int>(nodes.size());
        auto const steps = [](auto& lazy, int rank) {
            lazy.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 0.0f); });
            for (int n = 0; n < 8; ++n) one_step(lazy, rank == 1 ? 2.0f : 0.001f);
        };
        CHECK(text(run_case("votes", ranks, nodes, {}, [&](auto& on) {
                  herring::reducer<float, threads, per_tensor, shared, cheat<true>> lazy(
                      on.ranks, herring::layout{{"a", 10}, {"b", 20'000}});
                  std::string const said = refused(herring::errc::mismatch, [&] { steps(lazy, on.rank()); });
                  on.expect(has(said, "due() of the sync policy"), said);
              })) == "");
        CHECK(text(run_case("no votes", ranks, nodes, {}, [&](auto& on) {
                  herring::reducer<float, threads, per_tensor, shared, cheat<false>> lazy(
                      on.ranks, herring::layout{{"a", 10}, {"b", 20'000}});
                  std::string const said = refused(herring::errc::mismatch, [&] { steps(lazy, on.rank()); });
                  on.expect(has(said, "due() of the sync policy"), said);
              })) == "");
    }
}

TEST_CASE("sync: with every_step the same loop reduces gradients") {
    CHECK(text(run_case("loop", 2, {"a", "b"}, {}, [](auto& on) {
              herring::reducer<float, threads> each(on.ranks, herring::layout{{"a", 10}});
              std::vector<float> weights(10, 1);
              for (float& one : each.tensor(0)) one = static_cast<float>(on.rank());
              on.expect(each.due(0), "due");
              each.ready(0);
              on.expect(each.wait() == herring::step::exchanged, "wait");
              weights[3] -= each.tensor(0)[3];
              each.updated(0, std::span<float>(weights));
              each.settle();
              on.expect(weights[3] == 0.5f && each.synchronized(0), "the mean of the gradients");
              on.ranks.barrier();
          })) == "");
}
