// herring: tests of ensemble/admission_roster.hpp: a later one is larger.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/admission_roster.hpp"

#include "herring/machine/time.hpp"

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
    CHECK(new_incarnation() > first);
}

TEST_CASE("incarnation: of two within a millisecond the later one is larger, too") {
    int later = 0, larger = 0;
    for (int i = 0; i < 64; ++i) {
        std::uint64_t const first = new_incarnation();
        auto const until = herring::clock::now() + std::chrono::microseconds(5);
        while (herring::clock::now() < until) {
        }
        ++later;
        larger += new_incarnation() > first ? 1 : 0;
    }
    CHECK(larger >= later - 1); // the time of day may be set back once
}

} // namespace ensemble_incarnation_test
