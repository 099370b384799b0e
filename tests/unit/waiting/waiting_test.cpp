// herring: tests of waiting/waiting.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

#include <string_view>

namespace {
struct eager {
    using axis = herring::axes::waiting;
    herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return herring::wait_action::poll;
    }
};
struct not_const {
    using axis = herring::axes::waiting;
    herring::wait_action next(std::uint32_t, std::int64_t, bool) noexcept {
        return herring::wait_action::poll;
    }
};
struct owning : eager {
    ~owning() {}
};
} // namespace

TEST_CASE("waiting: the concept") {
    CHECK(herring::waiting_policy<eager>);
    CHECK_FALSE(herring::waiting_policy<not_const>);
    CHECK_FALSE(herring::waiting_policy<owning>);
}

TEST_CASE("waiting: every action has a name of its own") {
    using enum herring::wait_action;
    for (auto const a : {poll, pause, yield, sleep})
        for (auto const b : {poll, pause, yield, sleep})
            CHECK((a == b) == (to_string(a) == std::string_view(to_string(b))));
}

using herring::wait_action;
using herring::waiting::adaptive;
using herring::waiting::adaptive_tuning;
using herring::waiting::adaptive_with;

TEST_CASE("adaptive: pauses, yields, then sleeps") {
    constexpr adaptive policy;
    constexpr adaptive_tuning tuning = adaptive::tuning;
    static_assert(policy.next(0, 0, false) == wait_action::pause);
    CHECK(policy.next(0, tuning.spin_ns - 1, false) == wait_action::pause);
    CHECK(policy.next(0, tuning.spin_ns, false) == wait_action::yield);
    CHECK(policy.next(0, tuning.yield_ns - 1, false) == wait_action::yield);
    CHECK(policy.next(0, tuning.yield_ns, false) == wait_action::sleep);
    CHECK(policy.next(0, std::int64_t(1) << 60, false) == wait_action::sleep);
}

TEST_CASE("adaptive: with more ranks than cores it never keeps the core") {
    constexpr adaptive policy;
    for (std::int64_t idle = 0; idle < 10'000'000; idle += 999)
        CHECK(policy.next(0, idle, true) != wait_action::pause);
    CHECK(policy.next(0, 0, true) == wait_action::yield);
    CHECK(policy.next(0, adaptive::tuning.oversubscribed_yield_ns, true) == wait_action::sleep);
}

TEST_CASE("adaptive: the longer it waits, the less it takes") {
    constexpr adaptive policy;
    for (bool const oversubscribed : {false, true}) {
        wait_action before = wait_action::poll;
        for (std::int64_t idle = 0; idle < 3'000'000; idle += 777) {
            wait_action const now = policy.next(0, idle, oversubscribed);
            CHECK(now >= before);
            before = now;
        }
    }
}

TEST_CASE("adaptive: its numbers are a value of its type") {
    using mine = adaptive_with<adaptive_tuning{.spin_ns = 5}>;
    CHECK(mine::tuning.spin_ns == 5);
    CHECK(mine::tuning.yield_ns == adaptive_tuning{}.yield_ns);
    CHECK(mine().next(0, 5, false) == wait_action::yield);
    CHECK_FALSE(std::is_same_v<mine, adaptive>);
    CHECK(std::is_same_v<adaptive_with<adaptive_tuning{}>, adaptive>);
    CHECK(sizeof(mine) == 1);
    CHECK(to_string(mine::tuning) == "spin_ns=5 yield_ns=200000 oversubscribed_yield_ns=50000");
}

TEST_CASE("block: sleeps at once") {
    constexpr herring::waiting::block policy;
    static_assert(policy.next(0, 0, false) == herring::wait_action::sleep);
    CHECK(policy.next(0, 0, true) == herring::wait_action::sleep);
    CHECK(policy.next(7, 1'000'000'000, false) == herring::wait_action::sleep);
    CHECK(std::is_empty_v<herring::waiting::block>);
}

TEST_CASE("spin: pauses, whatever happens") {
    constexpr herring::waiting::spin policy;
    static_assert(policy.next(0, 0, false) == herring::wait_action::pause);
    for (bool const oversubscribed : {false, true})
        for (std::int64_t const idle : {std::int64_t(0), std::int64_t(1'000'000), std::int64_t(1) << 60})
            CHECK(policy.next(1u << 31, idle, oversubscribed) == herring::wait_action::pause);
    CHECK(std::is_empty_v<herring::waiting::spin>);
}
