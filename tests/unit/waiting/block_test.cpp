// herring: tests of waiting/waiting.hpp: block.
// SPDX-License-Identifier: Apache-2.0
#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

TEST_CASE("block: sleeps at once") {
    constexpr herring::waiting::block policy;
    static_assert(policy.next(0, 0, false) == herring::wait_action::sleep);
    CHECK(policy.next(0, 0, true) == herring::wait_action::sleep);
    CHECK(policy.next(7, 1'000'000'000, false) == herring::wait_action::sleep);
    CHECK(std::is_empty_v<herring::waiting::block>);
}
