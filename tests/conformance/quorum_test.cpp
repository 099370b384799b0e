// herring: every quorum policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/quorum_suite.hpp"

#include "herring/ensemble/quorum.hpp"

#include "doctest/doctest.h"

using namespace herring::conformance;
using herring::quorum_tuning;
namespace quorum = herring::quorum;

namespace {
struct majority {
    using axis = herring::axes::quorum;
    static constexpr quorum_tuning tuning{};
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster / 2 + 1; }
};
struct all_but_one : majority {
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster > 1 ? roster - 1 : 1; }
};

struct nobody_of_many : majority {
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster < 100 ? 1 : 0; }
};
struct fewer_of_more : majority {
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster < 4 ? roster : 2; }
};
struct beyond_all : majority {
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster + 1; }
};
struct mood : majority {
    static inline std::size_t asked = 0;
    static constexpr std::size_t least(std::size_t roster) noexcept {
        return std::is_constant_evaluated() ? roster : 1 + ++asked % 2;
    }
};
struct no_probation_held : majority {
    static constexpr quorum_tuning tuning{.probation_left_after = 0};
};
struct patient : majority {
    static constexpr quorum_tuning tuning{.grace_percent = 1500};
};
} // namespace

TEST_CASE("quorum: at_least") {
    CHECK(text(quorum_suite<quorum::at_least<1>>()) == "");
    CHECK(text(quorum_suite<quorum::at_least<3>>()) == "");
    CHECK(
        text(
            quorum_suite<quorum::at_least<2, quorum_tuning{.grace_percent = 100, .probation_after = 1}>>()) ==
        "");
    CHECK(text(quorum_suite<quorum::at_least<
                   2, quorum_tuning{.grace_percent = 0, .least_grace_us = 0, .probation_after = 0}>>()) ==
          "");
}
TEST_CASE("quorum: by_deadline") {
    CHECK(text(quorum_suite<quorum::by_deadline<>>()) == "");
    CHECK(text(quorum_suite<quorum::by_deadline<3, quorum_tuning{.probation_after = 1}>>()) == "");
}
TEST_CASE("quorum: one's own, that counts the roster") {
    CHECK(text(quorum_suite<majority>()) == "");
    CHECK(text(quorum_suite<all_but_one>()) == "");
}

TEST_CASE("quorum: what is wrong is found") {
    for (findings const& found : {quorum_suite<nobody_of_many>(), quorum_suite<fewer_of_more>(),
                                  quorum_suite<beyond_all>(), quorum_suite<mood>()}) {
        REQUIRE_FALSE(found.empty());
        CHECK(found.front().test == "counts");
    }
    for (findings const& found : {quorum_suite<no_probation_held>(), quorum_suite<patient>()}) {
        REQUIRE_FALSE(found.empty());
        CHECK(found.front().test == "tuning");
    }
}
