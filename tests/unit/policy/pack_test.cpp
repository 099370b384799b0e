// herring: tests of policy/pack.hpp: a pack has one policy an axis, found by axis and by name.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/pack.hpp"

#include "doctest/doctest.h"

#include <type_traits>

namespace {
template <class Axis> struct model { using axis = Axis; };
namespace axes = herring::axes;
using full = herring::policies<double, model<axes::transport>, model<axes::intra_node>, model<axes::sharding>,
                               model<axes::placement>, model<axes::fusion>, model<axes::update>,
                               model<axes::optimizer>, model<axes::sync>, model<axes::progress>,
                               model<axes::waiting>, model<axes::trace>>;
struct derived : model<axes::update> {};
} // namespace

TEST_CASE("pack: a policy by its axis, and by the name of its axis") {
    CHECK(std::is_same_v<full::element, double>);
    CHECK(std::is_same_v<full::of<axes::sharding>, model<axes::sharding>>);
    CHECK(std::is_same_v<full::of<axes::trace>, full::trace>);
    CHECK(std::is_same_v<full::transport, model<axes::transport>>);
    CHECK(std::is_empty_v<full>);
}

TEST_CASE("pack: a set finds the policy of an axis, one that is derived from a model too") {
    using set = herring::detail::policy_set<model<axes::transport>, derived>;
    CHECK(std::is_same_v<herring::detail::policy_for<axes::update, set>, derived>);
    CHECK(std::is_same_v<herring::detail::policy_for<axes::transport, set>, model<axes::transport>>);
}
