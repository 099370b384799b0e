// herring: tests of in_gaps.hpp: quanta while a real rank waits for a slower one, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "herring/in_gaps.hpp"

#include "doctest/doctest.h"

#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace in_gaps_test {

using namespace std::chrono_literals;
using herring::world;
using reducer =
    herring::reducer<float, herring::transport::inproc, herring::update::sum, herring::progress::thread>;

struct counting {
    std::atomic<int>& done;
    std::chrono::nanoseconds quantum() const noexcept { return 1us; }
    bool next() noexcept {
        ++done;
        return true;
    }
};
/// Ranks as threads on nodes of their own.
template <class Body> int on_nodes(int ranks, Body const& body) {
    herring::launch_options apart;
    for (int r = 0; r < ranks; ++r) apart.nodes.push_back(std::string(1, static_cast<char>('a' + r)));
    return herring::launch_threads(ranks, body, apart);
}
void fill(reducer& reduce, float value) {
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (float& x : reduce.tensor(i)) x = value;
}
bool all_are(reducer& reduce, float value) {
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (float const x : reduce.tensor(i))
            if (x != value) return false;
    return true;
}
template <class Call> std::string what_of(herring::errc code, Call&& call) {
    try {
        call();
    } catch (herring::error const& why) {
        return why.code() == code ? why.what() : std::string("another code: ") + why.what();
    }
    return "no error";
}
bool one_core() { return std::thread::hardware_concurrency() < 2; }

TEST_CASE("in_gaps: quanta are done while a slower rank is waited for, and sums are what they were") {
    if (one_core()) return;
    // The second rank computes until the task of the first was asked often: gaps that end by work, not by time.
    std::atomic<int> done{0};
    std::atomic<bool> wrong{false};
    CHECK(on_nodes(2, [&](world& w) {
              reducer reduce(w, {{"a", 1000}, {"b", 70'000}});
              counting task{done};
              int steps = 0, before = 0;
              bool enough = true, goes_on = true;
              auto const step = [&](auto& waits) {
                  fill(reduce, static_cast<float>(w.rank() + 1 + steps));
                  // Gaps of 20 ms, and then such that end with the first quanta.
                  if (w.rank() == 1) {
                      auto const until = herring::clock::now() + 20ms;
                      while (herring::clock::now() < until && done < before + 100) std::this_thread::yield();
                  }
                  for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
                  waits.wait();
                  wrong = wrong || !all_are(reduce, static_cast<float>(3 + 2 * steps));
                  ++steps;
                  w.barrier();
                  before = done;
                  goes_on = before < 200 &&
                            steps < 500; // alike on both: on a busy machine gaps are long enough late
                  w.barrier();
              };
              if (w.rank() == 1) {
                  while (goes_on) step(reduce);
                  return 0;
              }
              auto work = reduce.in_gaps(task);
              while (goes_on) {
                  step(work);
                  if (steps <= 8) enough = enough && done == 0;
              }
              herring::gap_report const& report = work.report();
              MESSAGE(to_string(report));
              enough = enough && report.steps == static_cast<std::uint64_t>(steps) &&
                       report.quanta == static_cast<std::uint64_t>(done) && report.quanta >= 200 &&
                       report.used > 0ns && report.share() < 1;
              return enough ? 0 : 1;
          }) == 0);
    CHECK(!wrong);
}

TEST_CASE(
    "in_gaps: a tensor that is not ready, and a call of the task's into the reducer, are refused as ever") {
    if (one_core()) return;
    world alone;
    reducer reduce(alone, {{"a", 10}, {"b", 10}});
    std::atomic<int> done{0};
    counting task{done};
    auto work = reduce.in_gaps(task);
    reduce.ready(0);
    CHECK(what_of(herring::errc::bad_state, [&] { work.wait(); }).find("'b'") != std::string::npos);
    reduce.ready(1);
    CHECK(work.wait() == herring::step::exchanged);
    CHECK(work.report().steps == 1);
    CHECK(&work.task() == &task);
}

TEST_CASE("in_gaps: a rank that dies is named as by wait") {
    if (one_core()) return;
    std::atomic<int> done{0};
    std::atomic<bool> waits{false};
    CHECK(on_nodes(2, [&](world& w) {
              reducer reduce(w, {{"a", 10}});
              counting task{done};
              if (w.rank() == 1) {
                  for (int step = 0; step < 9; ++step) {
                      std::this_thread::sleep_for(3ms);
                      reduce.ready(0);
                      reduce.wait();
                  }
                  while (!waits) std::this_thread::yield(); // a failure that is known already ends ready()
                  w.fail(herring::failure::make(herring::errc::peer_failed, 1, 1, "backward", "on purpose"));
                  return 0;
              }
              auto work = reduce.in_gaps(task);
              for (int step = 0; step < 9; ++step) {
                  reduce.ready(0);
                  work.wait();
              }
              reduce.ready(0);
              waits = true;
              herring::status const ended = work.wait(10s);
              return !ended.ok() && ended.code() == herring::errc::peer_failed ? 0 : 1;
          }) == 0);
}

TEST_CASE("in_gaps: ranks that share cores have no gaps") {
    auto const ranks = static_cast<int>(std::thread::hardware_concurrency()) + 1;
    if (ranks > 8) return;
    std::atomic<int> refused{0}, done{0};
    CHECK(on_nodes(ranks, [&](world& w) {
              reducer reduce(w, {{"a", 10}});
              counting task{done};
              auto const says = what_of(herring::errc::unsupported, [&] { (void)reduce.in_gaps(task); });
              refused += says.find("fewer cores than ranks") != std::string::npos;
              reduce.ready(0); // it goes on without
              reduce.wait();
              return 0;
          }) == 0);
    CHECK(refused == ranks);
}

} // namespace in_gaps_test
