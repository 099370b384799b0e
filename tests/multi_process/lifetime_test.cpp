// herring: worlds that move or end before their reducers, and reducers that are called twice at once. Never a hang, never
// a result that is none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp_asio.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace herring;
using namespace std::chrono_literals;

namespace {

using transport::tcp;
using by_tcp = reducer<float, tcp, update::sum, fusion::per_tensor>;
using by_thread = reducer<float, tcp, update::sum, fusion::per_tensor, progress::thread>;
using on_node = reducer<float, tcp, intra_node::shared_memory, update::sum, fusion::per_tensor>;

layout const tensors{{"a", 1000}, {"b", 50'000}};

launch_options two_nodes() {
    launch_options options;
    options.nodes = {"a", "b"};
    options.timeout = 25s;
    return options;
}
launch_options one_node() {
    launch_options options;
    options.timeout = 25s;
    return options;
}

/// In a rank: what does not hold is printed, and the rank ends with status 1.
struct unmet : std::runtime_error {
    using std::runtime_error::runtime_error;
};
void require(bool holds, std::string const& what) {
    if (!holds) throw unmet("not so: " + what);
}
template <class Call> void require_error(errc code, std::string const& words, Call&& call) {
    try {
        call();
    } catch (error const& why) {
        require(why.code() == code, std::string("of another code: ") + why.what());
        require(std::string(why.what()).find(words) != std::string::npos,
                std::string("in other words: ") + why.what());
        return;
    }
    throw unmet("no error where there should be: " + words);
}

template <class Reducer> void begin(Reducer& reduce) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (auto& x : reduce.tensor(i)) x = 1;
        reduce.ready(i);
    }
}
template <class Reducer> void run_step(Reducer& reduce, world& ranks) {
    begin(reduce);
    reduce.wait();
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (float const x : reduce.tensor(i))
            require(x == static_cast<float>(ranks.size()), "a sum is the number of ranks");
}

struct holder {
    world ranks;
    explicit holder(world&& from) : ranks(std::move(from)) {}
};

template <class Reducer> void moves(launch_options const& options) {
    // Steps go on, and the old object may be gone, or have become another world.
    CHECK(launch(
              2,
              [](world& ranks) {
                  auto first = std::make_unique<world>(std::move(ranks));
                  Reducer reduce(*first, tensors);
                  run_step(reduce, *first);
                  holder second(std::move(*first));
                  first.reset();
                  for (int n = 0; n < 3; ++n) run_step(reduce, second.ranks);
                  world third;
                  third = std::move(second.ranks);
                  second.ranks = world();
                  run_step(reduce, third);
                  third.barrier();
              },
              options) == 0);
    // A deadline passes as before.
    CHECK(launch(
              2,
              [](world& ranks) {
                  Reducer reduce(ranks, tensors);
                  holder moved(std::move(ranks));
                  if (moved.ranks.rank() == 1) {
                      while (moved.ranks.failed() == nullptr) std::this_thread::sleep_for(10ms);
                      return;
                  }
                  begin(reduce);
                  auto const before = clock::now();
                  status const ended = reduce.wait(500ms);
                  require(!ended.ok() && ended.code() == errc::timeout && ended.peer() == 1,
                          "the late rank is named: " + ended.message());
                  require(clock::now() - before < 10s, "it is so at the deadline");
              },
              options) == 0);
}

} // namespace

TEST_CASE("lifetime: a world is moved while a reducer lives") {
    moves<by_tcp>(two_nodes());
    moves<by_thread>(two_nodes());
    moves<on_node>(one_node());
}

TEST_CASE("lifetime: no reducer is made from a world that was moved from") {
    world first;
    world const second = std::move(first);
    try {
        by_tcp reduce(first); // NOLINT: on purpose
        FAIL("it was moved from");
    } catch (error const& why) {
        CHECK(why.code() == errc::bad_state);
        CHECK(std::string(why.what()).find("moved from") != std::string::npos);
    }
}

namespace {
template <class Reducer> void outlives(launch_options const& options) {
    // Between steps: every call is refused, nobody is harmed, and the reducer may go.
    CHECK(launch(
              2,
              [](world& ranks) {
                  std::optional<world> own(std::move(ranks));
                  Reducer reduce(*own, tensors);
                  run_step(reduce, *own);
                  own.reset();
                  std::vector<float> some(10);
                  require_error(errc::bad_state, "its world has ended", [&] { reduce.ready(0); });
                  require_error(errc::bad_state, "its world has ended",
                                [&] { reduce.ready(0, reduce.tensor(0)); });
                  require_error(errc::bad_state, "its world has ended", [&] { reduce.wait(); });
                  require_error(errc::bad_state, "its world has ended", [&] { (void)reduce.wait(1s); });
                  require_error(errc::bad_state, "its world has ended", [&] { reduce.poll(); });
                  require_error(errc::bad_state, "its world has ended", [&] { reduce.all_reduce(some); });
                  require_error(errc::bad_state, "its world has ended",
                                [&] { (void)reduce.all_reduce(some, 1s); });
              },
              options) == 0);
    // In the middle of a step, the others are told at once.
    CHECK(launch(
              2,
              [](world& ranks) {
                  std::optional<world> own(std::move(ranks));
                  Reducer reduce(*own, tensors);
                  run_step(reduce, *own);
                  own->barrier(); // or a rank might be told in the step before
                  reduce.ready(0);
                  if (own->rank() == 1) {
                      own.reset();
                      require_error(errc::bad_state, "its world has ended", [&] { reduce.ready(1); });
                      return;
                  }
                  auto const before = clock::now();
                  status const ended = [&] {
                      try {
                          reduce.ready(1); // throws it, if rank 1 was quicker
                      } catch (error const& why) {
                          return status(why.why());
                      }
                      return reduce.wait(20s);
                  }();
                  require(ended.code() == errc::peer_failed && ended.peer() == 1, ended.message());
                  require(ended.message().find("destroyed its world in the middle") != std::string::npos,
                          ended.message());
                  require(clock::now() - before < 10s, "long before the deadline");
              },
              options) == 0);
    // A world that is assigned ends the one that was there.
    CHECK(launch(
              2,
              [](world& ranks) {
                  Reducer reduce(ranks, tensors);
                  run_step(reduce, ranks);
                  ranks = world();
                  require_error(errc::bad_state, "its world has ended", [&] { begin(reduce); });
              },
              options) == 0);
}
} // namespace

TEST_CASE("lifetime: a reducer that outlives its world is refused") {
    outlives<by_tcp>(two_nodes());
    outlives<by_thread>(two_nodes());
    outlives<on_node>(one_node());
}

TEST_CASE("lifetime: a reducer that outlives its world, over the control connections of join") {
    // As `launch`, but by `join`, and threads: what the control's own thread reads stays where it is.
    std::string const address = free_address();
    std::atomic<int> good{0};
    auto const rank = [&](int r) {
        try {
            join_options options;
            options.rank = r;
            options.size = 2;
            options.address = address;
            std::optional<world> own(join(options));
            auto const reduce = std::make_unique<by_tcp>(*own, tensors);
            run_step(*reduce, *own);
            own.reset();
            require_error(errc::bad_state, "its world has ended", [&] { reduce->wait(); });
            ++good;
        } catch (std::exception const& why) {
            std::fprintf(stderr, "rank %d: %s\n", r, why.what());
        }
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
    CHECK(good.load() == 2);
}

// ---- one call at a time -------------------------------------------------------------------------------------------

namespace {
template <class Reducer> void called_by_two_threads(launch_options const& options) {
    CHECK(launch(
              2,
              [](world& ranks) {
                  Reducer reduce(ranks, tensors);
                  for (int n = 0; n < 3; ++n) {
                      if (ranks.rank() == 1) {
                          std::this_thread::sleep_for(300ms); // the other one waits meanwhile
                          run_step(reduce, ranks);
                          continue;
                      }
                      begin(reduce);
                      std::atomic<int> refused{0};
                      std::thread second([&] {
                          std::this_thread::sleep_for(100ms);
                          std::vector<float> some(100);
                          try {
                              reduce.all_reduce(some);
                          } catch (error const& why) {
                              bool const named =
                                  why.code() == errc::bad_state &&
                                  std::string(why.what()).find("two threads use this reducer at once") !=
                                      std::string::npos;
                              refused = named ? 1 : 2;
                              if (!named) std::fprintf(stderr, "%s\n", why.what());
                          }
                      });
                      status const ended = reduce.wait(20s);
                      second.join();
                      require(ended.ok(), "the first caller's step goes on: " + ended.message());
                      require(refused == 1, "the second caller is refused");
                      for (float const x : reduce.tensor(1)) require(x == 2, "a sum is the number of ranks");
                  }
              },
              options) == 0);
}
} // namespace

TEST_CASE("one call at a time: a second thread is refused, and the first one's step goes on") {
    called_by_two_threads<by_tcp>(two_nodes());
    called_by_two_threads<by_thread>(two_nodes());
    called_by_two_threads<on_node>(one_node());
}

namespace {
enum class does { calls_and_catches, calls, throws };

template <class Reducer> void handled(does what) {
    CAPTURE(static_cast<int>(what));
    CHECK(launch(
              2,
              [&](world& ranks) {
                  boost::asio::io_context context;
                  Reducer reduce(ranks, tensors, context);
                  for (int n = 0; n < 3; ++n) {
                      if (ranks.rank() == 1) {
                          std::this_thread::sleep_for(300ms);
                          run_step(reduce, ranks);
                          continue;
                      }
                      begin(reduce);
                      bool ran = false, refused = false;
                      std::vector<float> some(100);
                      boost::asio::steady_timer timer(context, 100ms);
                      timer.async_wait([&](boost::system::error_code) {
                          ran = true;
                          if (what == does::throws) throw std::runtime_error("of the handler's");
                          try {
                              reduce.all_reduce(some);
                          } catch (error const& why) {
                              refused = why.code() == errc::bad_state;
                              if (what == does::calls) throw;
                          }
                      });
                      std::string thrown;
                      try {
                          require(reduce.wait(20s).ok(), "the step goes on");
                      } catch (unmet const&) {
                          throw;
                      } catch (std::exception const& why) {
                          thrown = why.what();
                      }
                      require(ran, "the handler ran");
                      if (what == does::throws)
                          require(thrown == "of the handler's", "its exception leaves wait: " + thrown);
                      else
                          require(refused, "the handler is refused");
                      if (what == does::calls && !Reducer::progress_in_background)
                          require(thrown.find("called from a handler that runs inside its own wait") !=
                                      std::string::npos,
                                  "the refusal leaves wait: " + thrown);
                      if (what == does::calls_and_catches) require(thrown.empty(), thrown);
                      for (float const x : reduce.tensor(1)) require(x == 2, "the step is complete");
                  }
              },
              two_nodes()) == 0);
}
struct by_caller : by_tcp {
    static constexpr bool progress_in_background = false;
    using by_tcp::by_tcp;
};
struct in_background : by_thread {
    static constexpr bool progress_in_background = true;
    using by_thread::by_thread;
};
} // namespace

TEST_CASE("one call at a time: a handler of the program's io_context that runs inside a wait") {
    for (does const what : {does::calls_and_catches, does::calls, does::throws}) {
        handled<by_caller>(what);
        handled<in_background>(what);
    }
}

TEST_CASE("one call at a time: what a handler throws while the reducer is destroyed, the next run throws") {
    CHECK(launch(
              2,
              [](world& ranks) {
                  boost::asio::io_context context;
                  {
                      by_tcp reduce(ranks, tensors, context);
                      begin(reduce);
                      reduce.wait();
                      if (ranks.rank() == 0) std::this_thread::sleep_for(50ms);
                      std::vector<float> some(100);
                      if (ranks.rank() == 1) std::this_thread::sleep_for(300ms);
                      reduce.all_reduce(some); // waits are armed on rank 0
                      for (int n = 0; n < 3; ++n)
                          boost::asio::post(context, [] { throw std::runtime_error("late"); });
                  }
                  int late = 0;
                  for (int n = 0; n < 10; ++n) {
                      context.restart();
                      try {
                          context.run();
                      } catch (std::runtime_error const&) {
                          ++late;
                      }
                  }
                  require(late == 3, std::to_string(late) + " exceptions of 3");
              },
              two_nodes()) == 0);
}
