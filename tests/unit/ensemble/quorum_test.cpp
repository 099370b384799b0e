// herring: tests of ensemble/quorum.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace quorum_test {

using herring::quorum_policy;
using herring::quorum_tuning;

struct majority {
    using axis = herring::axes::quorum;
    static constexpr quorum_tuning tuning{};
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster / 2 + 1; }
};
struct may_throw : majority {
    static constexpr std::size_t least(std::size_t roster) { return roster; }
};
struct of_ints : majority {
    static constexpr int least(std::size_t) noexcept { return 1; }
};
struct untuned {
    using axis = herring::axes::quorum;
    static constexpr std::size_t least(std::size_t) noexcept { return 1; }
};
struct tuned_by_another : untuned {
    static constexpr int tuning = 3;
};
struct nobody : majority {
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster / 2; }
};

TEST_CASE("quorum: a policy counts, is tuned, and asks for somebody") {
    CHECK(quorum_policy<majority>);
    CHECK_FALSE(quorum_policy<may_throw>);
    CHECK_FALSE(quorum_policy<of_ints>);
    CHECK_FALSE(quorum_policy<untuned>);
    CHECK_FALSE(quorum_policy<tuned_by_another>);
    CHECK_FALSE(quorum_policy<nobody>);
}

TEST_CASE("quorum: the grace is a share of t_k, at least a wake-up") {
    constexpr quorum_tuning usual{};
    CHECK(usual.grace_ns(0) == 50'000);
    CHECK(usual.grace_ns(-7) == 50'000);
    CHECK(usual.grace_ns(100'000) == 50'000);
    CHECK(usual.grace_ns(1'000'000) == 150'000);
    CHECK(usual.grace_ns(1'000'007) == 150'001);
    CHECK(quorum_tuning{.grace_percent = 0, .least_grace_us = 0}.grace_ns(1'000'000'000) == 0);
    CHECK(quorum_tuning{}.late_ns(1000) == 1'000'000); // more than the grace
    CHECK(quorum_tuning{}.late_ns(1'000'000'000) == 150'000'000);
    CHECK(quorum_tuning{.late_after_us = 0}.late_ns(1000) == 50'000);
    CHECK(quorum_tuning{.grace_percent = 300, .least_grace_us = 0}.grace_ns(7) == 21);
}

TEST_CASE("quorum: a grace to the deadline is longer than any, from the first moment on") {
    constexpr quorum_tuning all{.grace_percent = quorum_tuning::to_the_deadline, .least_grace_us = 0};
    CHECK(all.grace_ns(0) == std::int64_t{1} << 61);
    CHECK(all.grace_ns(1'000) == std::int64_t{1} << 61);
}

TEST_CASE("quorum: a grace beyond all deadlines does not overflow") {
    constexpr std::int64_t century = std::int64_t{100} * 365 * 86'400 * 1'000'000'000;
    for (std::uint32_t const percent : {1u, 15u, 100u, std::numeric_limits<std::uint32_t>::max()})
        for (std::int64_t const t_k : {std::int64_t{1'000'000'000'000}, century})
            CHECK(quorum_tuning{.grace_percent = percent}.grace_ns(t_k) >= t_k / 100);
    CHECK(quorum_tuning{.least_grace_us = std::numeric_limits<std::uint32_t>::max()}.grace_ns(1) ==
          std::int64_t{4'294'967'295'000});
}

TEST_CASE("quorum: the tuning prints") {
    CHECK(to_string(quorum_tuning{}) ==
          "grace_percent=15 least_grace_us=50 probation_after=3 probation_left_after=3 late_after_us=1000");
    CHECK(to_string(quorum_tuning{.grace_percent = quorum_tuning::to_the_deadline}) ==
          "grace_percent=to_the_deadline least_grace_us=50 probation_after=3 probation_left_after=3 "
          "late_after_us=1000");
}

} // namespace quorum_test

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
