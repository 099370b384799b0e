// herring: tests of control/survival/redial_schedule.hpp: when a silent control connection is opened anew.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/survival/redial_schedule.hpp"

#include "doctest/doctest.h"

#include <chrono>

using herring::detail::resolve;
using herring::detail::rendezvous::redial_schedule;
using namespace std::chrono_literals;

namespace {

constexpr herring::time_point begun{1h};

constexpr redial_schedule joined(std::chrono::milliseconds peer_timeout = 5s) {
    redial_schedule made;
    made.begin(resolve({.detector = {.peer_timeout = peer_timeout}}).detector);
    return made;
}

} // namespace

TEST_CASE(
    "redial_schedule: it is due after 2 s without a word, and after peer_timeout where rank 0 is heard") {
    redial_schedule of = joined();
    CHECK_FALSE(of.suspects(1'999ms));
    CHECK(of.suspects(2s));
    CHECK(of.due(2s, 2s, 0s));
    CHECK_FALSE(of.due(2s, 1'999ms, 0s)); // its data comes in
    CHECK_FALSE(of.due(4'999ms, 10ms, 0s));
    CHECK(of.due(5s, 10ms, 0s));
    CHECK_FALSE(of.due(3s, 3s, 1'500ms)); // queues
    CHECK(of.due(3'500ms, 3'500ms, 1'500ms));
    redial_schedule quick = joined(1s);
    CHECK(quick.due(400ms, 400ms, 0s));
    CHECK_FALSE(quick.due(999ms, 10ms, 0s));
}

TEST_CASE("redial_schedule: each attempt has twice the time of the last, up to 4 s, and none begins before "
          "it has passed") {
    redial_schedule of = joined();
    herring::time_point now = begun;
    for (auto const time : {500ms, 1'000ms, 2'000ms, 4'000ms, 4'000ms}) {
        CHECK_FALSE(of.pauses(now));
        CHECK(of.attempt(now) == time);
        CHECK(of.next() == now + time);
        CHECK(of.pauses(now + time - 1ms));
        now += time;
    }
    of.carried_on(now);
    CHECK(of.pauses(now + 499ms));
    CHECK_FALSE(of.pauses(now + 500ms));
    CHECK(of.attempt(now + 500ms) == 500ms);
    of.at_once();
    CHECK_FALSE(of.pauses(now + 500ms));
    CHECK(of.attempt(now + 500ms) == 1s);
}

TEST_CASE("redial_schedule: over a slow link an attempt has longer; attempts that become connections count") {
    redial_schedule of = joined();
    CHECK(of.answer_time() == 2s);
    CHECK(of.due(5s, 5s, 2s));
    CHECK(of.attempt(begun) == 2'500ms);
    CHECK(of.next() == begun + 500ms);
    CHECK(of.answer_time() == 4s);
    CHECK(of.number() == 1);
    CHECK(of.number() == 2);
}
