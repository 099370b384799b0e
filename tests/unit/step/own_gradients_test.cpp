// herring: tests of step/own_gradients.hpp: where gradients lie, and their statistics, bucket by bucket.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/own_gradients.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {
// Two buckets: of tensors 0 and 1, and of tensor 2, which is split.
herring::plan a_plan() {
    herring::plan result;
    result.element_bytes = sizeof(float);
    result.tensors = {{0, 10, 0}, {16, 16, 0}, {32, 64, 1}};
    result.elements = 96;
    for (std::uint32_t const tensors : {2u, 1u, 0u}) {
        herring::bucket one;
        one.tensors = tensors;
        one.elements = 32;
        result.buckets.push_back(one);
    }
    return result;
}
} // namespace

TEST_CASE("own_gradients: each has its place, and all are ready once a step") {
    herring::plan const plan = a_plan();
    herring::detail::own_gradients<float, false> mine(plan, 0);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(mine.tensor(i).size() == plan.tensors[i].elements);
        CHECK(reinterpret_cast<std::uintptr_t>(mine.tensor(i).data()) % 64 == 0);
        CHECK_FALSE(mine.ledger().is_ready(i));
        mine.mark_ready(i, mine.tensor(i));
    }
    CHECK(mine.ledger().all_ready());
    mine.end_step();
    CHECK_FALSE(mine.ledger().under_way());
}

TEST_CASE("own_gradients: squares are summed by buckets, in order, whatever order they came in") {
    herring::plan const plan = a_plan();
    herring::detail::own_gradients<float, true> mine(plan, 0);
    herring::detail::due_buckets const groups(plan);
    std::vector<float> const theirs(64, 0.5f);
    mine.mark_ready(2, theirs);
    mine.tensor(1)[0] = 3;
    mine.mark_ready(1, mine.tensor(1));
    mine.tensor(0)[9] = 2;
    mine.mark_ready(0, mine.tensor(0));
    std::vector<double> seen;
    mine.observe(groups, [&](std::size_t group, double squares) {
        CHECK(group == seen.size());
        seen.push_back(squares);
    });
    CHECK(seen == std::vector<double>{13, 16});
}
