// herring: tests of ensemble/incarnation.hpp: a later one is larger.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/incarnation.hpp"

#include "herring/base/time.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>
#include <set>

namespace ensemble_incarnation_test {

using herring::detail::ensembles::new_incarnation;

TEST_CASE("incarnation: none is zero, and those of one moment differ") {
    std::set<std::uint64_t> drawn;
    for (int i = 0; i < 8; ++i) {
        std::uint64_t const next = new_incarnation();
        CHECK(next != 0);
        drawn.insert(next);
    }
    CHECK(drawn.size() > 1);
}

TEST_CASE("incarnation: a later one is larger") {
    std::uint64_t const first = new_incarnation();
    auto const until = herring::clock::now() + std::chrono::milliseconds(3);
    while (herring::clock::now() < until) {
    }
    CHECK((new_incarnation() >> 20) >= (first >> 20));
}

} // namespace ensemble_incarnation_test
