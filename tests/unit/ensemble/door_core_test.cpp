// herring: tests of ensemble/door_core.hpp: turns without a thread, and a pause of its own that is nobody's silence.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/door_core.hpp"

#include "doctest/doctest.h"
#include "ensemble_control.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ensemble_door_core_test {

using namespace ensemble_control;
using ensembles::door_core;
using ensembles::door_notice;
using std::chrono::milliseconds;

std::vector<std::string> names() { return {"a"}; }

/// Turns until there is a notice.
door_notice turned(door_core& core) {
    std::vector<door_notice> notices;
    auto const until = herring::clock::now() + plenty;
    while (notices.empty() && herring::clock::now() < until) require(core.turn(notices), "it goes on");
    require(!notices.empty(), "a notice");
    return std::move(notices.front());
}

TEST_CASE("door_core: an order wakes a turn, and stop() ends them") {
    door_core core(door_options(), a_shape(), names());
    core.share(-1);
    core.drop(0, 1, "there is none");
    core.drop(9, 1, "nor a place for it");
    core.stop();
    std::vector<door_notice> notices;
    CHECK_FALSE(core.turn(notices));
    CHECK(notices.empty());
}

TEST_CASE("door_core: who was not looked at for long was not silent for long") {
    ensembles::door_options options = door_options();
    options.heartbeat = milliseconds(100);
    options.peer_timeout = milliseconds(600);
    door_core core(options, a_shape(), names());
    core.share(-1);
    detail::descriptor lane;
    ensembles::control_link kept;
    std::thread other([&] {
        member_peer peer(core.address(), 3);
        peer.join();
        lane = peer.lane(core.address());
        kept = std::move(peer.link);
    });
    CHECK(turned(core).kind == door_notice::what::admitted);
    other.join();
    std::vector<door_notice> notices;
    auto const paused = herring::clock::now();
    ::poll(nullptr, 0, 1000); // as if the process had been stopped
    for (int i = 0; i < 3; ++i) core.turn(notices);
    REQUIRE(notices.empty());                            // otherwise nothing more would come
    CHECK(turned(core).kind == door_notice::what::lost); // it says nothing indeed
    CHECK(herring::clock::now() - paused >= milliseconds(1500));
}

} // namespace ensemble_door_core_test
