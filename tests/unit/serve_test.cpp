// herring: tests of serve.hpp: a server returns when all workers have left, and serves one reducer after another.
// SPDX-License-Identifier: Apache-2.0
#include "herring/serve.hpp"

#include "doctest/doctest.h"

#include "herring/collectives/all_moments.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/on_nonfinite.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>

using namespace herring;
using transport::inproc;

namespace {

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}

launch_options by(std::string const& ranks) {
    launch_options options;
    for (char const c : ranks) {
        options.nodes.emplace_back(1, c == 's' ? 'a' : c);
        options.roles.push_back(c == 's' ? role::server : role::worker);
    }
    return options;
}
template <class Function> int run(std::string const& ranks, Function const& function) {
    return launch_threads(static_cast<int>(ranks.size()), function, by(ranks));
}

using served = reducer<float, inproc, placement::dedicated, update::sum>;
layout const tensors{{"a", 1000}, {"none", 0}, {"b", 3}};

template <class Reducer> void run_step(Reducer& reduce, world& w) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        std::span<float> const t = reduce.tensor(i);
        std::fill(t.begin(), t.end(), static_cast<float>(w.worker() + 1));
        reduce.ready(i);
    }
    reduce.wait();
    float const due = static_cast<float>(w.workers() * (w.workers() + 1) / 2);
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (float const x : reduce.tensor(i)) require(x == due, "a sum");
}

} // namespace

TEST_CASE("serve: workers are numbered without servers, and servers are nodes of their own") {
    CHECK(run("saasb", [](world& w) {
              require(w.workers() == 3 && w.servers() == 2, "counts");
              int const workers[] = {-1, 0, 1, -1, 2};
              require(w.worker() == workers[w.rank()], "worker");
              require((w.role() == role::server) == (w.worker() < 0), "role");
              require(w.nodes() == 4, "nodes");
              require(w.local_size() == (w.worker() == 0 || w.worker() == 1 ? 2 : 1), "ranks of the node");
          }) == 0);
}

TEST_CASE("serve: commands that no worker gives are told from those that they give") {
    using session = detail::session<detail::pack_of<served>::type>;
    using desk = detail::command_desk<session, true>;
    using detail::command;
    using share = detail::collective_program::share;
    topology const map = topology::of_names(std::vector<std::string>{"a", "b", "s"},
                                            std::vector{role::worker, role::worker, role::server});
    auto const given = [&](command const& what) { return desk::is_given(what, map); };
    auto const part = [](share of) { return static_cast<std::uint8_t>(of); };
    command const spread{.what = command::kind::collective,
                         .operation = session::number_of<operations::broadcast>(),
                         .gives = part(share::root),
                         .takes = part(share::not_root),
                         .root = 1};
    command const gather{.what = command::kind::collective,
                         .operation = session::number_of<operations::all_gather>(),
                         .gives = part(share::owned)};
    CHECK(given({}));
    CHECK(given({.what = command::kind::start, .root = 1}));
    CHECK(given({.what = command::kind::collective}));
    CHECK(given({.what = command::kind::leave}));
    CHECK(given(spread));
    CHECK(given(gather));

    CHECK_FALSE(given({.what = command::kind::start}));
    CHECK_FALSE(given({.what = command::kind::start, .root = 2})); // a server
    command wrong = spread;
    wrong.root = -1;
    CHECK_FALSE(given(wrong));
    wrong = spread;
    wrong.gives = part(share::all);
    CHECK_FALSE(given(wrong));
    wrong = gather;
    wrong.root = 0;
    CHECK_FALSE(given(wrong));
    wrong = gather;
    wrong.takes = part(share::root);
    CHECK_FALSE(given(wrong));
    wrong = gather;
    wrong.twofold = true;
    CHECK_FALSE(given(wrong));
    using two =
        detail::session<detail::pack_of<reducer<float, inproc, placement::dedicated, update::moments>>::type>;
    command moments{.what = command::kind::collective, .operation = two::number_of<two::moments>()};
    CHECK(detail::command_desk<two, true>::is_given(moments, map)); // of no elements
    moments.elements = 1;
    CHECK_FALSE(detail::command_desk<two, true>::is_given(moments, map));
    moments.twofold = true;
    CHECK(detail::command_desk<two, true>::is_given(moments, map));
    using chosen = detail::session<detail::pack_of<
        reducer<float, inproc, placement::dedicated, update::any<update::sum, update::max>>>::type>;
    auto const given_by = [&](command what, std::uint8_t rule) {
        what.rule = rule;
        return detail::command_desk<chosen, true>::is_given(what, map);
    };
    CHECK(given_by({.what = command::kind::collective}, 2));
    CHECK_FALSE(given_by({.what = command::kind::collective}, 3));
    CHECK_FALSE(given_by(gather, 1)); // which combines nothing
    wrong = {.what = command::kind::collective, .rule = 1};
    CHECK_FALSE(given(wrong)); // of a reducer with one rule
    using training = detail::session<
        detail::pack_of<reducer<float, inproc, placement::dedicated, optimizer::adamw>>::type>;
    CHECK_FALSE(detail::command_desk<training, true>::is_given(
        {.what = command::kind::collective,
         .operation = training::number_of<operations::optimise<float, update::average, optimizer::adamw>>()},
        map));
    CHECK_FALSE(
        given({.what = command::kind::collective, .operation = session::number_of<operations::command>()}));
}

TEST_CASE("serve: it returns when the last worker has destroyed its reducer, whenever the others did") {
    std::atomic<int> left{0}, returned{0};
    CHECK(run("abcss", [&](world& w) {
              if (w.role() == role::server) {
                  serve<served>(w, tensors);
                  require(left.load() == 3, "it returned before the last worker had left");
                  returned.fetch_add(1);
                  return;
              }
              {
                  served reduce(w, tensors);
                  run_step(reduce, w);
                  // One after the other: nobody waits for anybody else's leaving.
                  while (left.load() != w.worker()) std::this_thread::yield();
                  require(returned.load() == 0, "a server returned too soon");
                  left.fetch_add(1);
              }
          }) == 0);
    CHECK(returned.load() == 2);
}

TEST_CASE("serve: hyper values that one worker sets after the last step do not matter to the servers") {
    CHECK(run("abs", [](world& w) {
              using trainer = reducer<float, inproc, placement::dedicated, optimizer::adamw>;
              if (w.role() == role::server) return serve<trainer>(w, tensors);
              trainer train(w, tensors);
              train.start(0, [](std::size_t, std::span<float> into) { std::ranges::fill(into, 1.0f); });
              for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
              train.wait();
              if (w.worker() == 0) train.set({.rate = 0.5});
          }) == 0);
}

TEST_CASE("serve: more groups of hyper values than a command has room for are refused on all ranks") {
    std::atomic<int> refused{0};
    CHECK(run("abs", [&](world& w) {
              using trainer = reducer<float, inproc, placement::dedicated, optimizer::adamw>;
              for (std::size_t const groups : {42u, 43u}) {
                  layout const grouped{{"first", 100}, {"last", 100, groups - 1}};
                  try {
                      if (w.role() == role::server)
                          serve<trainer>(w, grouped);
                      else
                          trainer(w, grouped);
                  } catch (error const& why) {
                      require(groups == 43 && why.code() == errc::bad_argument, why.what());
                      require(std::string(why.what()).find("take fewer groups") != std::string::npos,
                              why.what());
                      ++refused;
                  }
              }
          }) == 0);
    CHECK(refused == 3);
}

TEST_CASE("serve: the workers of a node leave one by one too") {
    CHECK(run("aaabbss", [](world& w) {
              using on_nodes =
                  reducer<float, inproc, placement::dedicated, intra_node::shared_memory, update::sum>;
              for (int again = 0; again < 3; ++again) {
                  if (w.role() == role::server) {
                      serve<on_nodes>(w, tensors);
                  } else {
                      on_nodes reduce(w, tensors);
                      run_step(reduce, w);
                      if (again == 2) require(reduce.all_reduce(1.0f) == 5.0f, "a value's sum");
                  }
              }
          }) == 0);
}

TEST_CASE("serve: one reducer after another, of other types and layouts, and one that is not used") {
    CHECK(run("sabs", [](world& w) {
              using trainer = reducer<double, inproc, placement::optimal, optimizer::adamw, progress::thread>;
              if (w.role() == role::server) {
                  serve<served>(w, tensors);
                  serve<served>(w, layout{});
                  serve<trainer>(w, tensors);
                  return;
              }
              { served unused(w, tensors); }
              {
                  served buffers(w);
                  std::vector<float> all(70'000, 1.0f);
                  buffers.all_reduce(all);
                  require(all[0] == 2 && all[69'999] == 2, "a buffer's sum");
                  buffers.all_reduce(std::span<float>());
                  broadcast(buffers, std::span(all).first(0), 1);
              }
              trainer train(w, tensors);
              train.start(
                  2, [](std::size_t, std::span<double> into) { std::fill(into.begin(), into.end(), 2.0); });
              for (int turn = 0; turn < 2; ++turn) {
                  for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
                  train.wait();
              }
              require(train.weights(0)[0] == train.weights(0)[999], "weights alike");
          }) == 0);
}

namespace {
/// Counts how often this thread prepares.
struct counting {
    using axis = axes::optimizer;
    static constexpr char const* name = "counting";
    static constexpr optimizer_facts facts{};
    static inline thread_local int prepared = 0;
    struct hyper {
        double rate = 1;
    };
    template <class Number> static Number prepare(hyper const& values, std::uint64_t) noexcept {
        ++prepared;
        return static_cast<Number>(values.rate);
    }
    template <class Number>
    static void step(Number& weight, Number gradient, Number*, Number const& rate) noexcept {
        weight = weight - rate * gradient;
    }
};
constexpr auto ones = [](std::size_t, std::span<float> into) { std::fill(into.begin(), into.end(), 1.0f); };

template <class Optimizer> void check_prepared_once_a_step() {
    using trainer = reducer<float, inproc, placement::dedicated, Optimizer>;
    CHECK(run("abss", [](world& w) {
              counting::prepared = 0;
              constexpr int steps = 5;
              if (w.role() == role::server) {
                  serve<trainer>(w, tensors);
                  // Once at the construction, once at the start.
                  require(counting::prepared == 2 + steps, std::to_string(counting::prepared) + " times");
                  return;
              }
              trainer train(w, tensors);
              train.start(0, ones);
              int const before = counting::prepared;
              for (int turn = 0; turn < steps; ++turn) {
                  for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
                  train.wait();
              }
              require(counting::prepared == before + steps, "a worker prepares once a step too");
          }) == 0);
}
} // namespace

TEST_CASE("serve: a server prepares the optimizer's numbers once a step") {
    check_prepared_once_a_step<counting>();
    check_prepared_once_a_step<optimizer::clipped<counting>>();
}

TEST_CASE(
    "serve: a reducer in two phases may go right behind a step that was skipped, or one of empty tensors") {
    using trainer = reducer<float, inproc, placement::dedicated,
                            optimizer::on_nonfinite<optimizer::sgd, nonfinite::skip_step>>;
    CHECK(run("abss", [](world& w) {
              layout const empty{{"none", 0}};
              if (w.role() == role::server) {
                  serve<trainer>(w, tensors);
                  serve<trainer>(w, empty);
                  return;
              }
              {
                  trainer train(w, tensors);
                  train.start(1, ones);
                  std::fill(train.tensor(0).begin(), train.tensor(0).end(),
                            w.worker() == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
                  for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
                  require(train.wait() == step::skipped, "it is skipped");
                  require(train.gradient_norm() != train.gradient_norm(), "its norm is no number");
                  require(train.weights(0)[999] == 1.0f, "no weight is touched");
              }
              trainer train(w, empty);
              train.start(0, ones);
              for (int turn = 0; turn < 20; ++turn) {
                  train.ready(0);
                  require(train.wait() == step::exchanged, "it is exchanged");
                  require(train.gradient_norm() == 0, "the norm of nothing");
              }
          }) == 0);
}

TEST_CASE("serve: the plan says in words what an optimizer keeps on a rank that combines") {
    using trainer = reducer<float, inproc, placement::optimal, optimizer::adamw>;
    layout const large{{"a", 120'000}};
    constexpr std::size_t moments = 2 * sizeof(float), chunk = 64 * 1024; // an element, and elements at most
    auto const says = [](plan const& of, std::size_t of_a_rank) {
        require(of.least_optimizer_bytes + 16 * moments >= moments * of_a_rank, "at least: " + to_string(of));
        require(of.most_optimizer_bytes <= moments * (of_a_rank + chunk), "at most: " + to_string(of));
        require(to_string(of).find("; the optimizer keeps " + std::to_string(of.least_optimizer_bytes)) !=
                    std::string::npos,
                "in words: " + to_string(of));
    };
    CHECK(run("abc", [&](world& w) { // without servers each worker's node combines a third
              trainer train(w, large);
              says(train.plan(), 40'000);
          }) == 0);
    CHECK(run("abss", [&](world& w) { // the servers alone combine, a half each
              if (w.role() == role::server) {
                  serve<trainer>(w, large);
                  return;
              }
              trainer train(w, large);
              says(train.plan(), 60'000);
          }) == 0);
    CHECK(run("ab", [&](world& w) {
              reducer<float, inproc> plain(w, large);
              require(to_string(plain.plan()).find("optimizer") == std::string::npos, "none");
          }) == 0);
}

TEST_CASE("serve: two reducers at once have a server each, in threads of their own") {
    CHECK(run("abs", [](world& w) {
              if (w.role() == role::server) {
                  // Constructed in one order by all; then each has its thread.
                  detail::server<detail::serving<served::pack>::type> first(w, layout(tensors)),
                      second(w, layout{});
                  std::thread beside([&] { first.run().value(); });
                  second.run().value();
                  beside.join();
                  return;
              }
              served first(w, tensors), second(w);
              for (int turn = 0; turn < 3; ++turn) {
                  run_step(first, w);
                  require(second.all_reduce(1.0f) == 2.0f, "a value's sum");
              }
          }) == 0);
}

TEST_CASE("serve: a step of empty tensors, which has no buckets, and calls behind it") {
    CHECK(run("abs", [](world& w) {
              layout const empty{{"none", 0}};
              if (w.role() == role::server) return serve<served>(w, empty);
              served reduce(w, empty);
              for (int turn = 0; turn < 20; ++turn) {
                  reduce.ready(0);
                  reduce.wait();
              }
              require(reduce.all_reduce(1.0f) == 2.0f, "a value's sum");
          }) == 0);
}

namespace {
// The last call of a reducer is a step without a bucket: nothing but its command leaves.
template <class Reducer> int run_empty_steps(layout const& empty, int steps) {
    return run("abs", [&](world& w) {
        if (w.role() == role::server) return serve<Reducer>(w, empty);
        Reducer reduce(w, empty);
        if constexpr (requires { reduce.weights(0); }) reduce.start(0, [](std::size_t, auto) {});
        for (int turn = 0; turn < steps; ++turn) {
            for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
            reduce.wait();
        }
    });
}
} // namespace

TEST_CASE("serve: a reducer may go right behind a step without a bucket: of empty tensors, or of none") {
    using one_phase = reducer<float, inproc, placement::dedicated, optimizer::sgd>;
    using two_phases = reducer<float, inproc, placement::dedicated, optimizer::clipped<optimizer::sgd>>;
    for (layout const& empty : {layout{{"none", 0}}, layout{}})
        for (int const steps : {1, 1, 1, 2, 5}) {
            CHECK(run_empty_steps<served>(empty, steps) == 0);
            CHECK(run_empty_steps<one_phase>(empty, steps) == 0);
            CHECK(run_empty_steps<two_phases>(empty, steps) == 0);
        }
}

TEST_CASE("serve: a server touches the pages of its part alone") {
    auto const resident = [](std::byte const* from, std::size_t bytes) {
        std::vector<unsigned char> pages(bytes / 4096);
        auto* const at = const_cast<std::byte*>(from);
        REQUIRE(::mincore(at, pages.size() * 4096, pages.data()) == 0);
        return std::accumulate(pages.begin(), pages.end(), std::size_t{0},
                               [](std::size_t sum, unsigned char page) { return sum + (page & 1u); });
    };
    constexpr std::size_t elements = 16u << 20; // 64 MiB
    CHECK(run("assss", [&](world& w) {
              using one_bucket =
                  reducer<float, inproc, placement::dedicated, fusion::whole_model, update::sum>;
              layout const large{{"large", elements}};
              if (w.role() == role::server) {
                  detail::server<detail::serving<one_bucket::pack>::type> here(w, layout(large));
                  here.run().value();
                  std::size_t const touched = resident(here.memory(), elements * sizeof(float));
                  require(touched >= elements / 4096, "its part");
                  require(touched <= elements / 4096 + 1024,
                          "no more than its part, and a huge page at each end");
                  return;
              }
              one_bucket reduce(w, large);
              reduce.ready(0);
              reduce.wait();
          }) == 0);
}
