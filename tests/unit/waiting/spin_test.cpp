// herring: tests of waiting/waiting.hpp: spin.
// SPDX-License-Identifier: Apache-2.0
#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

TEST_CASE("spin: pauses, whatever happens") {
    constexpr herring::waiting::spin policy;
    static_assert(policy.next(0, 0, false) == herring::wait_action::pause);
    for (bool const oversubscribed : {false, true})
        for (std::int64_t const idle : {std::int64_t(0), std::int64_t(1'000'000), std::int64_t(1) << 60})
            CHECK(policy.next(1u << 31, idle, oversubscribed) == herring::wait_action::pause);
    CHECK(std::is_empty_v<herring::waiting::spin>);
}
