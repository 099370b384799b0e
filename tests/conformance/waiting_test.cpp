// herring: every waiting policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/waiting_suite.hpp"

#include "doctest/doctest.h"

using namespace herring::conformance;
using herring::wait_action;
namespace waiting = herring::waiting;

namespace {
struct mood {
    using axis = herring::axes::waiting;
    static constexpr char const* name = "mood";
    static inline int asked = 0;
    wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return ++asked % 2 == 0 ? wait_action::yield : wait_action::pause;
    }
};
struct elsewhere {
    using axis = herring::axes::waiting;
    static constexpr char const* name = "elsewhere";
    wait_action next(std::uint32_t rounds, std::int64_t, bool) const noexcept {
        return rounds > 100 ? static_cast<wait_action>(9) : wait_action::yield;
    }
};
} // namespace

TEST_CASE("waiting: spin") { CHECK(text(waiting_suite<waiting::spin>()) == ""); }
TEST_CASE("waiting: block") { CHECK(text(waiting_suite<waiting::block>()) == ""); }
TEST_CASE("waiting: adaptive") {
    CHECK(text(waiting_suite<waiting::adaptive>()) == "");
    CHECK(text(waiting_suite<waiting::adaptive_with<waiting::adaptive_tuning{
                   .spin_ns = 0, .yield_ns = 0, .oversubscribed_yield_ns = 0}>>()) == "");
}

TEST_CASE("waiting: what is wrong is found") {
    for (findings const& found : {waiting_suite<mood>(), waiting_suite<elsewhere>()}) {
        REQUIRE_FALSE(found.empty());
        CHECK(found.front().test == "decides");
    }
}
