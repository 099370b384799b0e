// herring: tests of model/part_format.hpp: sums of several contributions are no contribution, and take as many bytes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/part_format.hpp"

#include "doctest/doctest.h"

using herring::part_format;
using herring::part_kind;

TEST_CASE("part_format: the part of several ranks is a sum, that of one rank what the plan says") {
    constexpr part_format as_stored{2}, widened{4, part_kind::accumulator};
    static_assert(as_stored.kind == part_kind::stored);
    CHECK(as_stored.bytes(5) == 10);
    CHECK(widened.bytes(0) == 0);
    CHECK(as_stored.summed(1).kind == part_kind::stored);
    CHECK(as_stored.summed(2).kind == part_kind::accumulator);
    CHECK(as_stored.summed(2).bytes(5) == 10);
    CHECK(widened.summed(1).kind == part_kind::accumulator); // of one, so that all nodes' parts are alike
    CHECK(widened.summed(8).bytes(5) == 20);
}
