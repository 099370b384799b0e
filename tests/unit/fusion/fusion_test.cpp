// herring: tests of fusion/fusion.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/fusion/fusion.hpp"

#include "doctest/doctest.h"

namespace {
struct pairs {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "pairs";
    static constexpr bool closes(herring::fusion_state const& state) noexcept {
        return state.bucket_tensors == 2;
    }
};
struct may_throw {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "may_throw";
    static bool closes(herring::fusion_state const&) { return true; }
};
struct counts {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "counts";
    static int closes(herring::fusion_state const&) noexcept { return 1; }
};
struct nameless {
    using axis = herring::axes::fusion;
    static bool closes(herring::fusion_state const&) noexcept { return true; }
};
struct elsewhere : pairs {
    using axis = herring::axes::sharding;
};
} // namespace

TEST_CASE("fusion: the concept") {
    CHECK(herring::fusion_policy<pairs>);
    CHECK_FALSE(herring::fusion_policy<may_throw>);
    CHECK_FALSE(herring::fusion_policy<counts>);
    CHECK_FALSE(herring::fusion_policy<nameless>);
    CHECK_FALSE(herring::fusion_policy<elsewhere>);
    static_assert(pairs::closes({.bucket_tensors = 2}) && !pairs::closes({.bucket_tensors = 1}));
}
