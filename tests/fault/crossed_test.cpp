// herring: calls in crossed order are told within seconds, by name; what is only slow is never taken for them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/sync/periodic.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace herring;
using namespace std::chrono_literals;

namespace {

using by_tcp = reducer<float, transport::tcp, update::sum>;
using by_thread = reducer<float, transport::tcp, update::sum, progress::thread>;
using on_node = reducer<float, transport::tcp, intra_node::shared_memory, update::sum>;

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

/// A wait is looked at for a deadlock after a third of the usual time.
constexpr failure_detector_options soon{.heartbeat = 100ms, .long_wait = 300ms};

/// Runs `rank(world&)` on `ranks` processes: by `launch`, or each of them by `join`.
template <class Function>
int play(bool by_join, int ranks, std::vector<std::string> nodes, Function const& rank) {
    launch_options options;
    options.timeout = 60s;
    options.failure_detector = soon;
    if (!by_join) {
        options.nodes = std::move(nodes);
        return launch(
            ranks, [&](world& w) { rank(w); }, options);
    }
    int const port = free_port();
    return launch(
        ranks,
        [&](world& launched) {
            join_options how;
            how.rank = launched.rank();
            how.size = ranks;
            how.address = "127.0.0.1:" + std::to_string(port);
            how.node = nodes[static_cast<std::size_t>(launched.rank())];
            how.failure_detector = soon;
            world joined = join(how);
            rank(joined);
        },
        options);
}

template <class Call> void told(Call&& call) {
    auto const before = clock::now();
    try {
        call();
    } catch (error const& why) {
        std::string const text = why.what();
        require(why.code() == errc::mismatch && text.find("calls in crossed order") != std::string::npos,
                text);
        require(clock::now() - before < 4s, "long before the deadline"); // 0.5 s where nothing else runs
        return;
    }
    throw std::runtime_error("no error");
}

template <class Reducer> void crossed(bool by_join, std::vector<std::string> const& nodes) {
    int const ranks = static_cast<int>(nodes.size());
    INFO((by_join ? "join" : "launch"), ", ", ranks, " ranks");
    // Two reducers, each waits in another.
    CHECK(play(by_join, ranks, nodes, [](world& w) {
              Reducer a(w), b(w);
              std::vector<float> x(1000, 1), y(1000, 1);
              a.all_reduce(x);
              b.all_reduce(y);
              told([&] { w.rank() == 0 ? a.all_reduce(x) : b.all_reduce(y); });
          }) == 0);
    // A step of one, and an all_reduce of the other.
    CHECK(play(by_join, ranks, nodes, [](world& w) {
              Reducer a(w, {{"t", 1000}}), b(w);
              std::vector<float> y(1000, 1);
              told([&] {
                  if (w.rank() == 0) a.ready(0);
                  if (w.rank() == 0)
                      a.wait();
                  else
                      b.all_reduce(y);
              });
          }) == 0);
    // A barrier, and a construction.
    for (bool const constructs : {false, true})
        CHECK(play(by_join, ranks, nodes, [constructs](world& w) {
                  Reducer a(w);
                  std::vector<float> x(1000, 1);
                  a.all_reduce(x);
                  told([&] {
                      if (w.rank() != 0)
                          a.all_reduce(x);
                      else if (constructs)
                          Reducer b(w);
                      else
                          w.barrier();
                  });
              }) == 0);
}

} // namespace

TEST_CASE("crossed: two ranks wait in two reducers, or in one and the world, each for the other") {
    crossed<by_tcp>(true, {"a", "b"});
    crossed<on_node>(false, {"a", "a", "b", "b"});
    crossed<by_thread>(true, {"a", "b", "c"});
}

TEST_CASE("crossed: threads of one process") {
    launch_options options;
    options.nodes = {"a", "b"};
    options.failure_detector = soon;
    CHECK(launch_threads(
              2,
              [](world& w) {
                  by_tcp a(w), b(w);
                  std::vector<float> x(1000, 1);
                  told([&] { w.rank() == 0 ? a.all_reduce(x) : b.all_reduce(x); });
              },
              options) == 0);
}

namespace {
template <class Reducer> void legal(bool by_join, std::vector<std::string> const& nodes) {
    int const ranks = static_cast<int>(nodes.size());
    INFO((by_join ? "join" : "launch"), ", ", ranks, " ranks");
    // A rank computes, all others wait for it, in one reducer, in another, in the world.
    CHECK(play(by_join, ranks, nodes, [](world& w) {
              Reducer a(w), b(w);
              std::vector<float> x(1000, 1);
              if (w.rank() == 1) std::this_thread::sleep_for(1200ms);
              a.all_reduce(x);
              b.all_reduce(x);
              w.barrier();
              require(x[0] == static_cast<float>(w.size() * w.size()), "sums");
          }) == 0);
    // Two threads with a reducer each; at times each rank waits in the one for which the other computes.
    CHECK(play(by_join, ranks, nodes, [](world& w) {
              Reducer a(w), b(w);
              auto const use = [&](Reducer& reduce, bool late) {
                  std::vector<float> x(1000, 1);
                  for (int n = 0; n < 2; ++n) {
                      if (late) std::this_thread::sleep_for(n == 0 ? 1000ms : 100ms);
                      reduce.all_reduce(x);
                  }
              };
              std::thread second([&] { use(b, w.rank() == 0); });
              use(a, w.rank() != 0);
              second.join();
          }) == 0);
}
} // namespace

TEST_CASE("crossed: a rank that computes, and threads that wait in two reducers, are no deadlock") {
    legal<on_node>(false, {"a", "a", "b"});
    legal<by_thread>(true, {"a", "b"});
}

TEST_CASE("crossed: a rank that is alone on its node, and one that waits for the other of its own, are no "
          "deadlock") {
    using on_nodes = reducer<float, transport::tcp, intra_node::shared_memory, sync::hierarchical<16>>;
    for (bool const by_join : {false, true})
        CHECK(play(by_join, 3, {"a", "b", "b"}, [](world& w) {
                  on_nodes train(w, layout{{"weight", 1000}, {"bias", 10}});
                  train.start(0, [](std::size_t, std::span<float> of) { std::ranges::fill(of, 1.0f); });
                  for (int step = 0; step < 3; ++step) {
                      for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
                      require(train.wait() == herring::step::local, "a step of the nodes' own");
                      if (w.rank() == 2 && step == 1) std::this_thread::sleep_for(1500ms);
                      for (std::size_t i = 0; i < train.size(); ++i) {
                          for (float& one : train.weights(i)) one = static_cast<float>(w.rank());
                          train.updated(i);
                      }
                      train.settle();
                      require(train.weights(0)[999] == (w.rank() == 0 ? 0.0f : 1.5f), "the node's mean");
                  }
                  w.barrier();
              }) == 0);
}
