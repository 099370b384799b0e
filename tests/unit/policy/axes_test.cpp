// herring: tests of policy/axes.hpp: the tags, their order and what ranks compare follow from one list.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/axes.hpp"

#include "doctest/doctest.h"

#include <string>

namespace {
struct of_ones_own {};
} // namespace

TEST_CASE("axes: each has an index, in the order of the list, and nothing else has one") {
    using namespace herring;
    CHECK(detail::all_axes::size == 11);
    CHECK(detail::axis_index<axes::transport> == 0);
    CHECK(detail::axis_index<axes::intra_node> == 1);
    CHECK(detail::axis_index<axes::trace> == detail::all_axes::size - 1);
    CHECK(detail::axis_index<of_ones_own> == -1);
    CHECK(detail::axis_index<void> == -1);
}

TEST_CASE("axes: names are the tags', and ranks compare what changes a result or a message") {
    using namespace herring;
    CHECK(std::string(axes::intra_node::name) == "intra_node");
    CHECK(axes::placement::must_agree);
    CHECK(axes::update::must_agree);
    CHECK(axes::optimizer::must_agree);
    CHECK(axes::sync::must_agree);
    CHECK_FALSE(axes::progress::must_agree);
    CHECK_FALSE(axes::waiting::must_agree);
    CHECK_FALSE(axes::trace::must_agree);
}
