// herring: tests of step/due_buckets.hpp: which pieces a step has, and what ranks compare of them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/due_buckets.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <vector>

using herring::detail::due_buckets;

namespace {
// A bucket that was split in three stands between two others; the last is empty.
herring::plan a_plan() {
    herring::plan result;
    for (std::uint32_t const tensors : {2u, 1u, 0u, 0u, 1u, 1u}) {
        herring::bucket one;
        one.tensors = tensors;
        one.elements = result.buckets.size() < 5 ? 64 : 0;
        result.buckets.push_back(one);
    }
    return result;
}
std::vector<std::size_t> buckets_of(due_buckets const& of) {
    std::vector<std::size_t> result;
    for (std::size_t n = 0; n < of.pieces(); ++n) result.push_back(of.bucket(n));
    return result;
}
} // namespace

TEST_CASE("due_buckets: the parts of a split bucket are one group") {
    herring::plan const plan = a_plan();
    due_buckets due(plan);
    CHECK(due.groups() == 4);
    CHECK(due.none());
    CHECK(due.pieces() == 0);
    due.choose(0, [](std::size_t group) { return group == 1; });
    CHECK(buckets_of(due) == std::vector<std::size_t>{1, 2, 3});
    CHECK((due.is_due(2) && !due.is_due(0) && !due.is_due(4)));
    CHECK((!due.all() && !due.none()));
    std::vector<std::size_t> before;
    for (std::size_t full = 0; full <= 6; ++full) before.push_back(due.pieces_of(full));
    CHECK(before == std::vector<std::size_t>{0, 0, 1, 2, 3, 3, 3});
}

TEST_CASE("due_buckets: buckets without elements count neither for all nor for none") {
    herring::plan const plan = a_plan();
    due_buckets due(plan);
    due.choose(0, [](std::size_t group) { return group != 3; });
    CHECK((due.all() && !due.none()));
    due.choose(0, [](std::size_t group) { return group == 3; });
    CHECK((due.none() && !due.all()));
    CHECK(due.is_due(5));
}

TEST_CASE("due_buckets: the digest tells steps and choices apart") {
    herring::plan const plan = a_plan();
    due_buckets one(plan), other(plan);
    auto const first = [](std::size_t group) { return group == 0; };
    auto const last = [](std::size_t group) { return group == 2; };
    one.choose(4, first);
    other.choose(4, first);
    CHECK(one.digest() == other.digest());
    other.choose(5, first);
    CHECK(one.digest() != other.digest());
    other.choose(4, last);
    CHECK(one.digest() != other.digest());
    CHECK((one.digest() & 0xffff'ffffu) == 0);
}

TEST_CASE(
    "due_buckets: what nodes combine is a piece on every rank, and has no chunk where a rank is alone") {
    herring::plan plan = a_plan();
    plan.nodes = 2;
    plan.element_bytes = 4;
    plan.line_elements = 16;
    auto const is_second = [](std::size_t group) { return group == 1; };
    for (int const local_size : {1, 2}) {
        CAPTURE(local_size);
        due_buckets due(plan);
        due.combine_on_nodes(local_size, 2);
        due.choose(0, is_second);
        CHECK(due.pieces() == plan.buckets.size());
        CHECK(due.is_combined(1));
        CHECK(due.is_combined(0) == (local_size == 2));
        herring::execution networked, local;
        networked.path = local.path = herring::route::two_hop;
        due.adapt(networked, 1);
        CHECK(networked.path == herring::route::two_hop);
        due.adapt(local, 0);
        CHECK(local.path == herring::route::local);
        CHECK(local.shard_count == (local_size == 2 ? 1 : 0));
    }
    due_buckets alone(plan); // nodes of one rank each
    alone.combine_on_nodes(1, 1);
    alone.choose(0, is_second);
    CHECK(alone.pieces() == 3);
}
