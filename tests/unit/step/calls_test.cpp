// herring: tests of step/calls.hpp: one call at a time, and what is said of a misuse.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/calls.hpp"

#include "doctest/doctest.h"
#include "herring/error.hpp"
#include "herring/launch.hpp"
#include "herring/world.hpp"

#include <stdexcept>
#include <string>
#include <thread>

using namespace herring;

namespace {
/// The error that `f` throws; "" if none.
template <class Function> std::string thrown(Function&& f, errc code) {
    try {
        f();
    } catch (error const& why) {
        CHECK(why.code() == code);
        return why.what();
    }
    return "";
}
bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
} // namespace

TEST_CASE("calls: a call that finds another one under way is refused, and that one goes on") {
    world alone;
    detail::calls calls(alone);
    detail::call const first(calls, "wait");
    for (int again = 0; again < 2; ++again)
        CHECK(says(thrown([&] { detail::call const second(calls, "ready"); }, errc::bad_state),
                   "called from a handler that runs inside its own wait"));
    std::string text;
    std::thread other(
        [&] { text = thrown([&] { detail::call const second(calls, "ready"); }, errc::bad_state); });
    other.join();
    CHECK(says(text, "two threads use this reducer at once"));
}

TEST_CASE("calls: the next call begins when the one before is over, also by an exception") {
    world alone;
    detail::calls calls(alone);
    for (int i = 0; i < 3; ++i) {
        std::string const text = thrown(
            [&] {
                detail::call const here(calls, "ready");
                calls.throw_misuse(errc::bad_argument, "ready", {"there is no tensor ", 7});
            },
            errc::bad_argument);
        CHECK(says(text, "there is no tensor 7"));
    }
    detail::call const here(calls, "ready");
}

TEST_CASE("calls: an abandoned step is told to all ranks, with the misuse that ended this one") {
    for (bool const misused : {false, true})
        CHECK(launch_threads(2, [&](world& ranks) {
                  if (ranks.rank() == 1) {
                      detail::calls calls(ranks);
                      if (misused)
                          (void)thrown([&] { calls.throw_misuse(errc::bad_state, "ready", {"twice"}); },
                                       errc::bad_state);
                      calls.announce_abandoned_step();
                      return;
                  }
                  try {
                      ranks.barrier();
                      throw std::runtime_error("no failure");
                  } catch (error const& why) {
                      std::string const text = why.what();
                      if (why.code() != errc::peer_failed || why.peer() != 1 ||
                          !says(text, misused ? "in the middle of a step, after its ready: bad state: twice"
                                              : "it destroyed its reducer in the middle of a step"))
                          throw std::runtime_error(text);
                  }
              }) == 0);
}

TEST_CASE("calls: between steps the misuse is told whose exception ends this rank, and no other") {
    enum class ends { by_misuse, by_misuse_caught, by_other_exception };
    for (ends const how : {ends::by_misuse, ends::by_misuse_caught, ends::by_other_exception})
        CHECK(launch_threads(2, [&](world& ranks) {
                  if (ranks.rank() == 0) return;
                  struct object { // as a reducer is
                      detail::calls calls;
                      ~object() { calls.announce_misuse(); }
                  };
                  try {
                      object own{detail::calls(ranks)};
                      try {
                          detail::call const here(own.calls, "broadcast");
                          own.calls.throw_misuse(errc::bad_argument, "broadcast", {"no rank ", 7});
                      } catch (error const&) {
                          if (how == ends::by_misuse) throw;
                      }
                      if (how == ends::by_other_exception) {
                          detail::call const here(own.calls, "broadcast");
                          throw std::runtime_error("another one");
                      }
                  } catch (std::exception const&) {
                  }
                  failure const* const told = ranks.failed();
                  if ((told != nullptr) != (how == ends::by_misuse)) throw std::runtime_error("told, or not");
                  if (told != nullptr &&
                      !says(told->text, "it left after its broadcast: bad argument: no rank 7"))
                      throw std::runtime_error(told->text);
              }) == 0);
}

using herring::detail::call_mark;

TEST_CASE("call_mark: taken by one call, refused to the others, and free again") {
    call_mark mark;
    for (int n = 0; n < 2; ++n) {
        CHECK(mark.take() == call_mark::taken::yes);
        CHECK(mark.take() == call_mark::taken::by_itself);
        std::thread([&] { CHECK(mark.take() == call_mark::taken::by_another_one); }).join();
        CHECK(mark.take() == call_mark::taken::by_itself); // who was refused has changed nothing
        mark.release();
    }
    std::thread([&] {
        CHECK(mark.take() == call_mark::taken::yes);
        mark.release();
    }).join();
    CHECK(mark.take() == call_mark::taken::yes);
}
