// herring: tests of dialler_core in ensemble/dialler.hpp: turns without a thread.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dialler.hpp"

#include "doctest/doctest.h"
#include "ensemble_control.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ensemble_dialler_core_test {

using namespace ensemble_control;
using ensembles::dialler_calls;
using ensembles::dialler_core;

TEST_CASE("dialler_core: attempts that fail alike are told once") {
    std::string address;
    {
        false_frontend const there; // a port that nobody listens on any more
        address = there.address;
    }
    member_sink sink;
    dialler_core core(dialler_options({address}), a_shape(), dialler_calls::of(sink));
    auto const until = herring::clock::now() + plenty;
    while (sink.heard.empty() && herring::clock::now() < until) require(core.turn(), "it goes on");
    CHECK(sink.heard.next("disconnected").text.find("no frontend answers on " + address) !=
          std::string::npos);
    for (int i = 0; i < 20; ++i) core.turn();
    CHECK(sink.heard.empty());
    core.request_stop();
    CHECK_FALSE(core.turn());
}

TEST_CASE("dialler_core: an order for a frontend that is not connected changes nothing; leaving without one "
          "is done at once") {
    false_frontend const there;
    member_sink sink;
    dialler_core core(dialler_options({there.address}), a_shape(), dialler_calls::of(sink));
    core.drop(0, "nothing there");
    core.drop(7, "nor a seventh");
    core.turn();
    CHECK(sink.heard.empty());
    CHECK_FALSE(core.leave(std::chrono::milliseconds(0)));
    core.turn();
    CHECK(core.leave(plenty));
    CHECK(sink.heard.empty());
}

} // namespace ensemble_dialler_core_test
