// herring: tests of ensemble/quorum.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>

namespace by_deadline_test {

using herring::quorum_tuning;
using herring::quorum::by_deadline;

TEST_CASE("by_deadline: one member makes an answer, or as many as are given") {
    static_assert(by_deadline<>::least(4) == 1 && by_deadline<3>::least(1000) == 3);
    CHECK_FALSE(herring::quorum_policy<by_deadline<0>>);
}

TEST_CASE("by_deadline: the grace ends after any deadline, however fast the first row came") {
    constexpr std::int64_t day = std::chrono::nanoseconds(std::chrono::hours(24)).count();
    static_assert(by_deadline<>::tuning.grace_ns(0) > day && by_deadline<>::tuning.grace_ns(1000) > day);
    static_assert(by_deadline<2, quorum_tuning{.grace_percent = 10}>::tuning.grace_ns(day) > day);
}

TEST_CASE("by_deadline: has the probation that it is given") {
    constexpr quorum_tuning strict =
        by_deadline<1, quorum_tuning{.probation_after = 1, .probation_left_after = 9}>::tuning;
    CHECK(strict.probation_after == 1);
    CHECK(strict.probation_left_after == 9);
}

} // namespace by_deadline_test
