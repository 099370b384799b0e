// herring: tests of sync/periodic.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/periodic.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <string>

namespace {
template <class Policy> std::string due_in(int steps) {
    Policy policy;
    std::string result;
    for (int n = 0; n < steps; ++n) {
        result += policy.due(0) ? 'x' : '.';
        policy.agreed({});
    }
    return result;
}
} // namespace

TEST_CASE("every: the last of k steps exchanges") {
    CHECK(due_in<herring::sync::every<1>>(4) == "xxxx");
    CHECK(due_in<herring::sync::every<3>>(8) == "..x..x..");
    CHECK(sizeof(herring::sync::every<3>) == 8);
}

TEST_CASE("post_local: steps that all exchange, then the last of k") {
    herring::sync::post_local<3, 4> policy;
    std::string seen;
    for (int n = 0; n < 13; ++n) {
        seen += policy.due(7) ? 'x' : '.';
        policy.agreed({});
    }
    CHECK(seen == "xxx...x...x..");
    CHECK(herring::sync::post_local<0, 2>().due(0) == herring::sync::every<2>().due(0));
}
