// herring: tests of sharding/sharding.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <vector>

namespace {
struct all_on_the_last {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "all_on_the_last";
    template <class Assign>
    static constexpr void shard(herring::bucket_view const& bucket, int servers, Assign&& assign) {
        if (bucket.elements > 0) assign(std::size_t{0}, bucket.elements, servers - 1);
    }
};
struct returns_a_list {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "returns_a_list";
    static std::vector<std::size_t> shard(herring::bucket_view const&, int) { return {}; }
};
struct nameless {
    using axis = herring::axes::sharding;
    template <class Assign> static void shard(herring::bucket_view const&, int, Assign&&) {}
};
} // namespace

TEST_CASE("sharding: the concept") {
    CHECK(herring::sharding_policy<all_on_the_last>);
    CHECK_FALSE(herring::sharding_policy<returns_a_list>);
    CHECK_FALSE(herring::sharding_policy<nameless>);
}
