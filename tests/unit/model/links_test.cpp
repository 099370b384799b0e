// herring: tests of model/links.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/links.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <string>

using herring::links;

TEST_CASE("links: the figures by number are the members, and the text has them by name") {
    links all{1, 2, 3, 4, 5, 6, 7, 8};
    for (std::size_t i = 0; i < links::count; ++i) CHECK(all[i] == i + 1);
    all[4] = 100'000;
    CHECK(all.rate_mbit == 100'000);
    CHECK(to_string(all) ==
          "latency=1,rack_latency=2,send=3,receive=4,rate=100000,local_rate=6,uplink_rate=7,queue=8");
    CHECK(to_string(links{}) == "none");
    CHECK(to_string(links{.probe = true}) == "probe");
    CHECK(to_string(links{.rate_mbit = 10, .probe = true}) == "probe,rate=10");
    static_assert(links{.rate_mbit = 7}[4] == 7);
    static_assert(links{} != links{.probe = true});
}
