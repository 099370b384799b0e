// herring: tests of engine/counters.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/counters.hpp"

#include "doctest/doctest.h"

#include <limits>

TEST_CASE("counters: start with nothing and nobody") {
    herring::counters const fresh;
    CHECK(fresh.operations == 0);
    CHECK(fresh.bytes_sent == 0);
    CHECK(fresh.slowest_rank == -1);
}

TEST_CASE("counters: a tally adds and is set") {
    herring::detail::tally count;
    CHECK(count.get() == 0);
    count.add(3);
    count.add(std::uint64_t{1} << 40);
    CHECK(count.get() == (std::uint64_t{1} << 40) + 3);
    count.set(7);
    CHECK(count.get() == 7);
}
