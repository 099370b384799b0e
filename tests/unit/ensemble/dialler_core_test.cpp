// herring: tests of ensemble/dialler_core.hpp: turns without a thread.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dialler_core.hpp"

#include "doctest/doctest.h"
#include "ensemble_control.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ensemble_dialler_core_test {

using namespace ensemble_control;
using ensembles::dialler_core;
using ensembles::dialler_notice;

/// Turns until there is a notice.
dialler_notice turned(dialler_core& core) {
    std::vector<dialler_notice> notices;
    auto const until = herring::clock::now() + plenty;
    while (notices.empty() && herring::clock::now() < until) require(core.turn(notices), "it goes on");
    require(!notices.empty(), "a notice");
    return std::move(notices.front());
}

TEST_CASE("dialler_core: attempts that fail alike are told once") {
    std::string address;
    {
        false_frontend const there; // a port that nobody listens on any more
        address = there.address;
    }
    dialler_core core(dialler_options({address}), a_shape());
    dialler_notice const first = turned(core);
    CHECK(first.kind == dialler_notice::what::disconnected);
    CHECK(first.text.find("no frontend answers on " + address) != std::string::npos);
    std::vector<dialler_notice> notices;
    for (int i = 0; i < 20; ++i) core.turn(notices);
    CHECK(notices.empty());
    core.stop();
    CHECK_FALSE(core.turn(notices));
}

TEST_CASE("dialler_core: an order for a frontend that is not connected changes nothing; leaving without one "
          "is done at once") {
    false_frontend const there;
    dialler_core core(dialler_options({there.address}), a_shape());
    core.drop(0, "nothing there");
    core.drop(7, "nor a seventh");
    std::vector<dialler_notice> notices;
    core.turn(notices);
    CHECK(notices.empty());
    CHECK_FALSE(core.leave(std::chrono::milliseconds(0)));
    core.turn(notices);
    CHECK(core.leave(plenty));
    CHECK(notices.empty());
}

} // namespace ensemble_dialler_core_test
