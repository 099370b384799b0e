// herring: the stand-in for the ensemble of a refused pack: it takes what an ensemble takes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

#include "doctest/doctest.h"

#include <chrono>

namespace ensemble_inert_test {

using namespace std::chrono_literals;
using stand_in = herring::detail::ensembles::inert_ensemble<float>;

TEST_CASE("ensemble inert: does nothing, and says so") {
    stand_in::frontend front({.listen = "127.0.0.1:0", .members = {"a"}, .elements = 1});
    stand_in::member me({.frontends = {"h:1"}, .name = "a", .elements = 1});
    CHECK(!front.ready());
    stand_in::answer const a = front.ask({}, 1ms, {.k = 1});
    CHECK(!a);
    CHECK(a.values().empty());
    float const f = a.get<int>();
    CHECK(f == 0);
    CHECK(!me.next(1ms));
    CHECK(!me.next());
    CHECK(!front.submit({}, 1ms, 0).accepted());
    CHECK(me.leave());
    CHECK(me.status().empty());
}

} // namespace ensemble_inert_test
