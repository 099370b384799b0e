// herring: tests of policy/pack.hpp: what ranks compare.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/pack.hpp"

#include "doctest/doctest.h"

#include <string_view>

namespace {
namespace axes = herring::axes;
template <class Axis> struct model { using axis = Axis; };
struct line : model<axes::transport> {
    static constexpr char const* name = "line";
};
template <int> struct numbered : model<axes::sharding> {
    static constexpr int name = 0; // no text: the compiler's spelling is used
};
using pack =
    herring::policies<float, line, model<axes::intra_node>, numbered<7>, model<axes::placement>,
                      model<axes::fusion>, model<axes::update>, model<axes::optimizer>, model<axes::sync>,
                      model<axes::progress>, model<axes::waiting>, model<axes::trace>>;
} // namespace

TEST_CASE("policy_facts: of a pack, in the order of the axes") {
    auto const& all = herring::policy_facts<pack>::all;
    REQUIRE(std::size(all) == 11);
    CHECK(all[0].axis == "transport");
    CHECK(all[0].name == "line");
    CHECK(all[0].must_agree);
    CHECK(all[2].name == herring::policy_name<numbered<7>>());
    CHECK(all[10].axis == "trace");
    CHECK_FALSE(all[10].must_agree);
}
