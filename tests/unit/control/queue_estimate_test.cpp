// herring: tests of control/queue_estimate.hpp: a slow link, one that is cut, and one that is neither.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/queue_estimate.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>

using namespace herring::detail;
using namespace std::chrono_literals;

TEST_CASE("queue estimate: it follows from what is in flight and what comes in") {
    herring::time_point now = herring::clock::now();
    herring::time_point const begun = now;
    queue_estimate estimate;
    std::uint64_t came = 0;
    auto const look = [&](unsigned unanswered, std::chrono::milliseconds since_data) {
        for (int peer = 0; peer < 3; ++peer) {
            socket_report found = {};
            found.in_flight = 250'000;
            found.unanswered = unanswered;
            found.since_data = since_data;
            found.received = came / 3;
            estimate.add(found);
        }
        estimate.end_look(now);
        now += 500ms;
        came += 62'500; // 125 kB/s in all
    };
    for (int i = 0; i < 6; ++i) look(0, 10ms);
    CHECK(estimate.delay(begun) == 0s); // nothing is sent again
    for (int i = 0; i < 6; ++i) look(4, 2s);
    CHECK(estimate.delay(begun) == 0s); // nothing comes in: it is cut
    look(4, 10ms);
    CHECK(estimate.delay(begun) > 11'900ms);
    CHECK(estimate.delay(begun) < 12'100ms);
    CHECK(estimate.delay(now) == 0s); // not since then
}
