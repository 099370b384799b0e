// herring: tests of ensemble/quorum.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

#include "doctest/doctest.h"

namespace at_least_test {

using herring::quorum_tuning;
using herring::quorum::at_least;

TEST_CASE("at_least: k is the number given, whatever the roster") {
    static_assert(at_least<3>::least(4) == 3 && at_least<3>::least(1000) == 3);
    static_assert(at_least<3>::least(2) == 3); // the frontend refuses it
    CHECK_FALSE(herring::quorum_policy<at_least<0>>);
}

TEST_CASE("at_least: has the tuning that it is given") {
    static_assert(at_least<3>::tuning == quorum_tuning{});
    static_assert(at_least<3, quorum_tuning{.grace_percent = 50}>::tuning.grace_ns(1'000'000) == 500'000);
    CHECK(at_least<2, quorum_tuning{.probation_after = 0}>::tuning.probation_after == 0);
}

} // namespace at_least_test
