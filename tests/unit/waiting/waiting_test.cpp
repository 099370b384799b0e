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
