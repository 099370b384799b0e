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
    static constexpr void shard(herring::bucket_view const& bucket, herring::roles const& nodes,
                                Assign&& assign) {
        if (bucket.elements > 0)
            assign(std::size_t{0}, bucket.elements, herring::server_id{nodes.server_count() - 1});
    }
};
struct returns_a_list {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "returns_a_list";
    static std::vector<std::size_t> shard(herring::bucket_view const&, herring::roles const&) { return {}; }
};
struct takes_a_number {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "takes_a_number";
    template <class Assign> static void shard(herring::bucket_view const&, int, Assign&&) {}
};
struct nameless {
    using axis = herring::axes::sharding;
    template <class Assign> static void shard(herring::bucket_view const&, herring::roles const&, Assign&&) {}
};
} // namespace

TEST_CASE("sharding: the concept") {
    CHECK(herring::sharding_policy<all_on_the_last>);
    CHECK_FALSE(herring::sharding_policy<returns_a_list>);
    CHECK_FALSE(herring::sharding_policy<takes_a_number>);
    CHECK_FALSE(herring::sharding_policy<nameless>);
}
