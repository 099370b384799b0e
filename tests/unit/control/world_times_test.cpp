// herring: tests of control/world_times.hpp: times that are not given follow from peer_timeout.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/world_times.hpp"

#include "herring/machine/time.hpp"
#include "herring/net/life_signs.hpp"

#include "doctest/doctest.h"

#include <cstddef>

using namespace herring::detail;
using herring::failure_detector_options;
using std::chrono::milliseconds;

namespace {
constexpr failure_detector_options of(milliseconds peer_timeout) {
    return resolve({.detector = {.peer_timeout = peer_timeout}}).detector;
}
} // namespace

TEST_CASE("world_times: the usual times are in order") {
    constexpr world_times usual = resolve({});
    constexpr failure_detector_options d = usual.detector;
    static_assert(d.peer_timeout == milliseconds(5'000) && usual.call == milliseconds(30'000));
    static_assert(d.heartbeat == milliseconds(500) && d.reply_timeout == milliseconds(1'000));
    static_assert(d.verdict_timeout == milliseconds(3'000) && d.long_wait == milliseconds(1'000));
    static_assert(hopeless_after(d) == milliseconds(2'000));
    static_assert(stall_detector::slack < d.heartbeat);
}

TEST_CASE("world_times: the other times follow peer_timeout") {
    constexpr failure_detector_options quick = of(milliseconds(500));
    CHECK(quick.heartbeat == milliseconds(50));
    CHECK(hopeless_after(quick) == milliseconds(200));
    CHECK(quick.peer_timeout == milliseconds(500));
    CHECK(quick.reply_timeout == milliseconds(250));
    CHECK(quick.verdict_timeout == milliseconds(750));
    // A longer peer_timeout is no reason to send fewer heartbeats.
    constexpr failure_detector_options usual = of(milliseconds(5'000));
    for (failure_detector_options const& patient : {of(std::chrono::hours(1)), of(herring::never)}) {
        CHECK(patient.heartbeat == usual.heartbeat);
        CHECK(hopeless_after(patient) == hopeless_after(usual));
        CHECK(patient.reply_timeout == usual.reply_timeout);
    }
    CHECK(herring::clock::duration(of(herring::never).peer_timeout) > std::chrono::hours(1)); // no overflow
}

TEST_CASE("world_times: a time that is given stays, and verdict_timeout follows reply_timeout") {
    constexpr world_times given{
        .detector = {.heartbeat = milliseconds(20), .reply_timeout = milliseconds(100)},
        .call = milliseconds(77)};
    constexpr world_times times = resolve(given);
    CHECK(times.detector.heartbeat == milliseconds(20));
    CHECK(times.detector.reply_timeout == milliseconds(100));
    CHECK(times.detector.verdict_timeout == milliseconds(300));
    CHECK(times.call == milliseconds(77));
    CHECK(resolve(times) == times);
}

TEST_CASE("world_times: every time has its place, and no resolved one is shorter than its least") {
    world_times times;
    for (std::size_t i = 0; i < world_times::count; ++i) {
        CHECK(times[i] == not_given);
        times[i] = milliseconds(1'000 + static_cast<int>(i));
    }
    CHECK(times.detector.peer_timeout == milliseconds(1'000));
    CHECK(times.detector.long_wait == milliseconds(1'004));
    CHECK(times.call == milliseconds(1'005));
    for (milliseconds const peer : {time_names[0].least, milliseconds(5'000), herring::never}) {
        world_times const resolved = resolve({.detector = {.peer_timeout = peer}});
        for (std::size_t i = 0; i < world_times::count; ++i) CHECK(resolved[i] >= time_names[i].least);
    }
}
