// herring: tests of sync/sync.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/sync.hpp"

#include "doctest/doctest.h"

namespace {
struct every_second {
    using axis = herring::axes::sync;
    bool due(std::uint64_t step) noexcept { return step % 2 == 0; }
};
struct says_int {
    using axis = herring::axes::sync;
    int due(std::uint64_t) noexcept { return 1; }
};
struct needs_argument : every_second {
    explicit needs_argument(int) {}
};
} // namespace

TEST_CASE("sync: the concept") {
    CHECK(herring::sync_policy<every_second>);
    CHECK_FALSE(herring::sync_policy<says_int>);
    CHECK_FALSE(herring::sync_policy<needs_argument>);
}
