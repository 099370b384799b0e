// herring: tests of control/survival/silence_bound.hpp: a slow link, one that is cut, and one that is neither.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/survival/silence_bound.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace herring::detail;
using namespace std::chrono_literals;

TEST_CASE("queue estimate: it follows from what is in flight, a window at least, and what comes in") {
    herring::time_point now = herring::clock::now();
    herring::time_point const begun = now;
    queue_estimate estimate;
    auto const look = [&](unsigned unanswered, std::chrono::milliseconds since_data,
                          std::size_t in_flight = 300'000) {
        for (int peer = 0; peer < 3; ++peer) {
            socket_report found = {};
            found.in_flight = in_flight;
            found.unanswered = unanswered;
            found.since_data = since_data;
            found.incoming = 50'000; // bytes a second
            estimate.add(found);
        }
        estimate.end_look(now, 1h);
        now += 500ms;
    };
    for (int i = 0; i < 6; ++i) look(0, 10ms);
    CHECK(estimate.delay(begun) == 0s); // nothing is sent again
    for (int i = 0; i < 6; ++i) look(4, 2s);
    CHECK(estimate.delay(begun) == 0s); // nothing comes in: it is cut
    look(4, 10ms);
    CHECK(estimate.delay(begun) == 12s);
    CHECK(estimate.delay(now) == 12s); // it drains for so long
    CHECK(estimate.delay(now + 11s) == 12s);
    CHECK(estimate.delay(now + 12s) == 0s);
    look(4, 10ms, 20'000); // more may wait that is for others, or comes from them
    CHECK(estimate.delay(now) > 10s);
    CHECK(estimate.delay(now) < 11s);
}

namespace {

/// A connection as it is found, over which so many bytes have come in all.
struct found_at {
    std::size_t in_flight = 768'000;
    unsigned unanswered = 0;
    std::chrono::milliseconds since_data{10}, round_trip{1};
};
class looks {
  public:
    herring::time_point now = herring::clock::now();
    queue_estimate estimate;

    /// A look, and half a second, in which `bytes` come in.
    void look(found_at const& at, std::uint64_t bytes, herring::clock::duration most = 15s) {
        socket_report found;
        found.in_flight = at.in_flight;
        found.unanswered = at.unanswered;
        found.since_data = found.since_packet = at.since_data;
        found.round_trip = at.round_trip;
        found.queueing = at.round_trip - 1ms;
        found.incoming = rate_.look(now, came_);
        estimate.add(found);
        estimate.end_look(now, most);
        now += 500ms;
        came_ += bytes;
    }

  private:
    std::uint64_t came_ = 0;
    incoming_rate rate_;
};
constexpr found_at stuck{.unanswered = 4};

} // namespace

TEST_CASE("queue estimate: what drains still does while nothing comes in between two looks") {
    looks of;
    for (int i = 0; i < 6; ++i) of.look(stuck, 62'500);
    herring::time_point const last = of.now - 350ms; // after the look before
    for (int i = 0; i < 8; ++i) of.look({.unanswered = 4, .since_data = 350ms + 500ms * i}, 0);
    CHECK(of.estimate.delay(last) > 12s);
}

TEST_CASE("queue estimate: where all that was sent has arrived, what comes in may still wait") {
    looks of;
    for (int i = 0; i < 6; ++i) of.look(stuck, 62'500);
    of.look({.in_flight = 0, .round_trip = 3s}, 62'500);
    CHECK(of.estimate.delay(of.now) > 12s);
}

TEST_CASE("queue estimate: a round trip that was long before everything stopped is no news") {
    looks of;
    for (int i = 0; i < 6; ++i) of.look({.in_flight = 62'500, .round_trip = 600ms}, 62'500);
    CHECK(of.estimate.delay(of.now - 500ms) == 1'198ms);
    for (int i = 1; i < 10; ++i)
        of.look({.in_flight = 30'000, .unanswered = 2, .since_data = 500ms * i, .round_trip = 600ms}, 0);
    CHECK(of.estimate.delay(of.now - 5s) <= 1'198ms);
    CHECK(of.estimate.delay(of.now - 3s) == 0s);
}

TEST_CASE("queue estimate: where round trips are measured, it is twice as long as they are") {
    looks of;
    for (int i = 0; i < 6; ++i) of.look({.in_flight = 62'500, .round_trip = 1'501ms}, 200); // others wait too
    CHECK(of.estimate.delay(of.now - 500ms) == 3s);
}

TEST_CASE("queue estimate: after an outage, of which no rate follows, answers end it") {
    looks of;
    for (int i = 0; i < 6; ++i) of.look({}, 0);
    of.look(stuck, 1'448);
    of.look(stuck, 1'448);
    CHECK(of.estimate.delay(of.now) == 15s);
    of.look({.unanswered = 1}, 1'000'000);
    CHECK(of.estimate.delay(of.now) == 15s); // not yet
    of.look({.round_trip = 99ms}, 1'000'000);
    CHECK(of.estimate.delay(of.now) == 0s);
    CHECK(of.estimate.delay(of.now - 1h) == 0s);
}
