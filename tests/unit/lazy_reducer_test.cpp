// herring: tests of lazy_reducer.hpp: which packs it is of, its collectives, an empty layout, a rank that leaves in a step, votes that travel.
// SPDX-License-Identifier: Apache-2.0
#include "herring/lazy_reducer.hpp"

#include "doctest/doctest.h"

#include "herring/collectives/all_gather.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/launch.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/progress/progress.hpp"
#include "herring/sync/periodic.hpp"
#include "herring/sync/selective.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {
using herring::transport::inproc;
using lazy_type = herring::reducer<float, inproc, herring::sync::every<2>, herring::update::average>;
using plain_type = herring::reducer<float, inproc, herring::update::average>;

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}

/// Weights of 0.
template <class Lazy> void start(Lazy& lazy) {
    lazy.start(
        0, [](std::size_t, std::span<float> weights) { std::fill(weights.begin(), weights.end(), 0.0f); });
}
} // namespace

TEST_CASE("lazy_reducer: of packs that skip steps, and of no others") {
    CHECK(std::is_same_v<lazy_type, herring::basic_lazy_reducer<lazy_type::pack>>);
    CHECK(std::is_same_v<plain_type, herring::basic_reducer<plain_type::pack>>);
    CHECK(
        std::is_same_v<plain_type,
                       herring::reducer<float, inproc, herring::sync::every_step, herring::update::average>>);
}

TEST_CASE("lazy_reducer: collectives between steps, and between wait and settle") {
    CHECK(herring::launch_threads(2, [](herring::world& ranks) {
              lazy_type lazy(ranks, herring::layout{{"a", 4}});
              start(lazy);
              std::vector<float> mine(2, static_cast<float>(ranks.rank())), all(4);
              auto const collect = [&] {
                  herring::all_gather(lazy, std::span<float const>(mine), std::span<float>(all));
                  require(all == std::vector<float>{0, 0, 1, 1}, "all_gather");
                  require(lazy.all_reduce(static_cast<float>(ranks.rank())) == 0.5f, "all_reduce");
              };
              for (int n = 0; n < 3; ++n) {
                  collect();
                  lazy.ready(0);
                  lazy.wait();
                  collect();
                  lazy.updated(0);
                  lazy.settle();
              }
              return 0;
          }) == 0);
}

TEST_CASE(
    "lazy_reducer: weights that nobody has set are no zeros; those in the program's memory need no start") {
    CHECK(herring::launch_threads(2, [](herring::world& ranks) {
              lazy_type lazy(ranks, herring::layout{{"a", 4}});
              auto const refused = [](auto const& call) -> std::string {
                  try {
                      call();
                  } catch (herring::error const& why) {
                      return why.code() == herring::errc::bad_state ? why.what() : "";
                  }
                  return "";
              };
              std::string const no_weights =
                  "there are no weights yet; call start(root, fill) or load(folder) on "
                  "all ranks first, or keep weights in memory of the program's";
              require(refused([&] { lazy.weights(0); }).find(no_weights) != std::string::npos, "weights");
              std::vector<float> own(4);
              for (int n = 0; n < 2; ++n) {
                  own[0] = static_cast<float>(ranks.rank());
                  lazy.ready(0);
                  lazy.wait();
                  require(refused([&] { lazy.updated(0); }).find(no_weights) != std::string::npos, "updated");
                  lazy.updated(0, own);
                  lazy.settle();
              }
              require(own[0] == 0.5f, "the mean of what the ranks lent");
              start(lazy);
              require(lazy.weights(0)[0] == 0.0f, "what start has set");
              return 0;
          }) == 0);
}

TEST_CASE("lazy_reducer: a layout without tensors takes steps that do nothing") {
    CHECK(herring::launch_threads(2, [](herring::world& ranks) {
              herring::reducer<float, inproc, herring::sync::selective<>> lazy(ranks, herring::layout{});
              for (int n = 0; n < 3; ++n) {
                  require(lazy.wait() == herring::step::local, "there is nothing to exchange");
                  lazy.settle();
              }
              return 0;
          }) == 0);
}

namespace {
/// Steps whose program polls until it may end the gradients, and until it may settle.
template <class Lazy> void polled_steps(std::vector<std::string> nodes) {
    herring::launch_options how;
    how.nodes = std::move(nodes);
    CHECK(herring::launch_threads(
              static_cast<int>(how.nodes.size()),
              [](herring::world& ranks) {
                  Lazy lazy(ranks, herring::layout{{"a", 40}, {"b", 3}});
                  start(lazy);
                  auto const poll_until_done = [&] {
                      auto const deadline = herring::clock::now() + std::chrono::seconds(20);
                      while (!lazy.done()) require(herring::clock::now() < deadline, "done() never holds");
                  };
                  for (int n = 0; n < 5; ++n) {
                      require(!lazy.done(), "gradients are missing");
                      for (std::size_t i = 0; i < 2; ++i) {
                          std::ranges::fill(lazy.tensor(i), 1.0f);
                          lazy.ready(i);
                      }
                      poll_until_done();
                      lazy.wait();
                      require(!lazy.done(), "no tensor is updated");
                      for (std::size_t i = 0; i < 2; ++i) {
                          std::ranges::fill(lazy.weights(i), static_cast<float>(ranks.rank()));
                          lazy.updated(i);
                      }
                      poll_until_done();
                      lazy.settle();
                  }
              },
              how) == 0);
}
} // namespace

TEST_CASE("lazy_reducer: done() holds once nothing is on its way, before wait and before settle") {
    using herring::sync::selective_tuning;
    constexpr selective_tuning ahead{.window = 2}, behind{.window = 2, .ahead = 0};
    polled_steps<lazy_type>({"a", "b"});
    polled_steps<lazy_type>({"a", "a", "b"});
    polled_steps<herring::reducer<float, inproc, herring::sync::selective<ahead>>>({"a", "b", "b"});
    polled_steps<herring::reducer<float, inproc, herring::sync::selective<behind>>>({"a", "b"});
}

TEST_CASE("lazy_reducer: a rank that leaves between wait and settle is named by the others") {
    std::string said;
    CHECK_THROWS(herring::launch_threads(2, [&](herring::world& ranks) {
        lazy_type lazy(ranks, herring::layout{{"a", 4}});
        try { // whatever call of rank 0 it is that first sees it, the end of `start` too
            start(lazy);
            for (int step = 0; step < 2; ++step) {
                lazy.ready(0);
                lazy.wait(); // local at first
                if (ranks.rank() == 1) throw std::runtime_error("left");
                lazy.updated(0);
                lazy.settle();
            }
        } catch (herring::error const& why) {
            said = why.what();
        }
    }));
    INFO(said);
    CHECK(said.find("rank 1") != std::string::npos);
}

namespace {
/// Ranks vote in each step, for the other half of the model in turn.
template <int Ahead> struct voting {
    using axis = herring::axes::sync;
    using ballot = herring::sync::ballot;
    static constexpr herring::sync_facts facts{.votes = true, .ahead = Ahead};

    ballot vote() noexcept {
        ballot mine;
        if (steps % 2 == 0) mine.set(static_cast<std::size_t>(steps / 2 % 2));
        return mine;
    }
    void agreed(ballot const& any) noexcept {
        last = any;
        ++steps;
    }
    bool due(std::size_t bucket) const noexcept { return last.has(bucket); }

    ballot last{};
    int steps = 0;
};
template <int Ahead>
using voting_type =
    herring::reducer<float, inproc, herring::fusion::per_tensor, voting<Ahead>, herring::update::average>;

template <class Lazy> void take_step(Lazy& lazy) {
    for (std::size_t i = 0; i < lazy.size(); ++i) lazy.ready(i);
    lazy.wait();
    for (std::size_t i = 0; i < lazy.size(); ++i) lazy.updated(i);
    lazy.settle();
}
} // namespace

TEST_CASE("lazy_reducer: votes travel while the next step computes: no rank waits for one that is less than "
          "a step behind") {
    std::atomic<bool> ended = false;
    CHECK(herring::launch_threads(2, [&](herring::world& ranks) {
              voting_type<1> lazy(ranks, herring::layout{{"a", 4}, {"b", 4}});
              start(lazy);
              auto const until_ended = [&] {
                  for (int n = 0; n < 2000 && !ended; ++n)
                      std::this_thread::sleep_for(std::chrono::milliseconds(5));
                  require(ended, "rank 0 waits for the votes of rank 1 in a step that needs none of them");
              };
              if (ranks.rank() == 1) until_ended(); // before its own votes
              take_step(lazy);
              ended = true;
              require(lazy.due(0) && !lazy.due(1), "what rank 1 voted for, too");
              require(lazy.state().steps == 1, "the state has the votes");
              return 0;
          }) == 0);
}

TEST_CASE("lazy_reducer: a step does what the votes before it say, whoever asks first, and not at all") {
    for (int const asks : {0, 1, 2, 3})
        CHECK(herring::launch_threads(3, [&](herring::world& ranks) {
                  voting_type<1> lazy(ranks, herring::layout{{"a", 4}, {"b", 4}});
                  start(lazy);
                  std::vector<float> all(3, static_cast<float>(ranks.rank()));
                  for (int n = 0; n < 9; ++n) {
                      // votes of the steps 0, 2, 4, ... are for a, b, a, ...
                      bool const any = n % 2 == 1, first = any && n / 2 % 2 == 0, second = any && !first;
                      // ranks need not ask alike
                      if (asks == 1 || (asks == 3 && ranks.rank() == 1))
                          require(lazy.due(0) == first && lazy.due(1) == second, "due");
                      if (asks == 2) require(lazy.state().steps == n, "state");
                      if (asks == 2) lazy.set(lazy.state());
                      if (asks == 3)
                          require(lazy.all_reduce(static_cast<float>(ranks.rank())) == 1.0f, "all_reduce");
                      lazy.weights(0)[0] = lazy.weights(1)[0] = static_cast<float>(ranks.rank());
                      take_step(lazy);
                      float const own = static_cast<float>(ranks.rank());
                      require(lazy.weights(0)[0] == (first ? 1.0f : own), "a");
                      require(lazy.weights(1)[0] == (second ? 1.0f : own), "b");
                      require(lazy.synchronized(0) == first && lazy.synchronized(1) == second,
                              "synchronized");
                  }
                  return 0;
              }) == 0);
}

TEST_CASE("lazy_reducer: a rank that leaves before it votes is named by those who wait for its vote") {
    std::string said;
    CHECK_THROWS(herring::launch_threads(2, [&](herring::world& ranks) {
        voting_type<1> lazy(ranks, herring::layout{{"a", 4}, {"b", 4}});
        start(lazy);
        take_step(lazy);
        if (ranks.rank() == 1) throw std::runtime_error("left");
        try {
            take_step(lazy); // its own votes travel; those of the first step are there
            lazy.due(0);
        } catch (herring::error const& why) {
            said = why.what();
        }
    }));
    INFO(said);
    CHECK(said.find("rank 1") != std::string::npos);
}

TEST_CASE("lazy_reducer: a rank that is behind counts votes while nobody else is in a call, whatever the "
          "route of such a size") {
    using lazy_over_tcp = herring::reducer<float, herring::transport::tcp, herring::fusion::per_tensor,
                                           voting<1>, herring::update::average>;
    CHECK(herring::launch_threads(4,
                                  [](herring::world& ranks) {
                                      lazy_over_tcp lazy(ranks, herring::layout{{"a", 4}, {"b", 4}});
                                      start(lazy);
                                      if (ranks.rank() == 3)
                                          std::this_thread::sleep_for(std::chrono::milliseconds(200));
                                      take_step(lazy); // exchanges nothing
                                      if (ranks.rank() == 3) require(lazy.due(0), "what all voted for");
                                      ranks.barrier();
                                      return 0;
                                  },
                                  {.default_timeout = std::chrono::seconds(4)}) == 0);
}

TEST_CASE("lazy_reducer: one that is destroyed in a step, with votes that travel, leaves nothing to the "
          "thread that moves them") {
    using lazy = herring::reducer<float, inproc, herring::sync::selective<>, herring::update::average,
                                  herring::progress::thread>;
    for (int turn = 0; turn < 5; ++turn) {
        std::atomic<bool> leaving{false};
        std::string said;
        try {
            herring::launch_threads(3, [&](herring::world& ranks) {
                lazy steps(ranks, herring::layout{{"a", 1u << 16}, {"b", 64}});
                start(steps);
                if (ranks.rank() > 0)
                    while (!leaving) std::this_thread::yield();
                steps.ready(0);
                steps.ready(1);
                steps.wait();
                if (ranks.rank() == 0) leaving = true;
                if (ranks.rank() == 0) return 0;
                steps.updated(0);
                steps.updated(1);
                steps.settle();
                return 0;
            });
        } catch (herring::error const& why) {
            said = why.what();
        }
        CHECK(said.find("(rank 0): it destroyed its reducer in the middle of a step") != said.npos);
    }
}

TEST_CASE("lazy_reducer: `due` that differs between ranks is found, with an outer optimizer too") {
    auto const said = [](auto of) {
        using policy = typename decltype(of)::type;
        try {
            herring::launch_threads(2, [](herring::world& ranks) {
                herring::reducer<float, inproc, policy, herring::update::average> lazy(
                    ranks, herring::layout{{"a", 4}});
                lazy.start(
                    0, [](std::size_t, std::span<float> all) { std::fill(all.begin(), all.end(), 1.0f); });
                if (ranks.rank() == 1) { // one step ahead
                    policy ahead = lazy.state();
                    ahead.agreed({});
                    lazy.set(ahead);
                }
                for (int n = 0; n < 8; ++n) {
                    lazy.ready(0);
                    lazy.wait();
                    lazy.updated(0);
                    lazy.settle();
                }
                return 0;
            });
        } catch (herring::error const& wrong) {
            return std::string(wrong.what());
        }
        return std::string("no error");
    };
    auto const is_mismatch = [](std::string const& what) { return what.find("mismatch") != what.npos; };
    using namespace herring;
    std::string const every = said(std::type_identity<sync::every<4>>()),
                      outer = said(std::type_identity<sync::diloco<4, optimizer::nesterov>>());
    CHECK_MESSAGE(is_mismatch(every), every);
    CHECK_MESSAGE(is_mismatch(outer), outer);
}

TEST_CASE("lazy_reducer: a call ends while the progress thread waits for votes that travel") {
    // ThreadSanitizer sees whether both use the statistics of waits in order.
    using quiet = herring::sync::selective<herring::sync::selective_tuning{.threshold = 10.0f, .window = 1}>;
    using voting =
        herring::reducer<float, inproc, herring::progress::thread, quiet, herring::update::average>;
    herring::launch_options two_nodes;
    two_nodes.nodes = {"a", "b"};
    CHECK(herring::launch_threads(
              2,
              [](herring::world& ranks) {
                  voting lazy(ranks, herring::layout{{"a", 4}});
                  lazy.start(
                      0, [](std::size_t, std::span<float> all) { std::fill(all.begin(), all.end(), 1.0f); });
                  int local = 0;
                  for (int n = 0; n < 20; ++n) {
                      std::fill(lazy.tensor(0).begin(), lazy.tensor(0).end(), 1.0f);
                      if (ranks.rank() == 1)
                          std::this_thread::sleep_for(std::chrono::milliseconds(10)); // its vote is late
                      lazy.ready(0);
                      local += lazy.wait() == herring::step::local;
                      lazy.updated(0);
                      lazy.settle();
                      (void)lazy.counters();
                  }
                  require(local >= 15, "steps that exchange nothing");
                  return 0;
              },
              two_nodes) == 0);
}
