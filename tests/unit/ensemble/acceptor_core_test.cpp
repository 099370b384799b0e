// herring: tests of acceptor_core in ensemble/acceptor.hpp: turns without a thread, and a pause of its own that is nobody's silence.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/acceptor.hpp"

#include "doctest/doctest.h"
#include "ensemble_control.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ensemble_acceptor_core_test {

using namespace ensemble_control;
using ensembles::acceptor_calls;
using ensembles::acceptor_core;
using std::chrono::milliseconds;

std::vector<std::string> names() { return {"a"}; }

/// Turns until the sink is called.
call turned(acceptor_core& core, frontend_sink& sink, char const* name) {
    auto const until = herring::clock::now() + plenty;
    while (sink.heard.empty() && herring::clock::now() < until) require(core.turn(), "it goes on");
    return sink.heard.next(name);
}

TEST_CASE("acceptor_core: an order wakes a turn, and stop() ends them") {
    frontend_sink sink;
    acceptor_core core(acceptor_options(), a_shape(), names(), acceptor_calls::of(sink));
    core.share(-1);
    core.drop(0, 1, "there is none");
    core.drop(9, 1, "nor a place for it");
    core.stop();
    CHECK_FALSE(core.turn());
    CHECK(sink.heard.empty());
}

TEST_CASE("acceptor_core: who was not looked at for long was not silent for long") {
    ensembles::acceptor_options options = acceptor_options();
    options.heartbeat = milliseconds(100);
    options.peer_timeout = milliseconds(600);
    frontend_sink sink;
    acceptor_core core(options, a_shape(), names(), acceptor_calls::of(sink));
    core.share(-1);
    detail::descriptor lane;
    ensembles::control_link kept;
    std::thread other([&] {
        member_peer peer(core.address(), 3);
        peer.join();
        lane = peer.lane(core.address());
        kept = std::move(peer.link);
    });
    turned(core, sink, "admitted");
    other.join();
    auto const paused = herring::clock::now();
    ::poll(nullptr, 0, 1000);                                      // as if the process had been stopped
    for (int i = 0; i < 3 && sink.heard.empty(); ++i) core.turn(); // without a peer a turn would not end
    REQUIRE(sink.heard.empty());
    turned(core, sink, "lost"); // it says nothing indeed
    CHECK(herring::clock::now() - paused >= milliseconds(1500));
}

} // namespace ensemble_acceptor_core_test
