// herring: tests of sync/periodic.hpp: post_local.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/periodic.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <string>

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
