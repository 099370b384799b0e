// herring: tests of checkpoint/tensor_memory.hpp: places of arrays, and ranges that go on.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/tensor_memory.hpp"

#include "doctest/doctest.h"

#include <cstddef>

TEST_CASE("tensor_memory: a range goes on in the tensor and in both memories, or does not") {
    using herring::detail::checkpoints::state_shape;
    using herring::detail::checkpoints::tensor_memory;
    std::byte weights[64], state[128];
    tensor_memory const first{1, 4, 8, weights, state};
    CHECK(first.is_followed_by({1, 12, 1, weights + 32, state + 32}, 4));
    CHECK(!first.is_followed_by({2, 12, 1, weights + 32, state + 32}, 4));
    CHECK(!first.is_followed_by({1, 13, 1, weights + 32, state + 32}, 4));
    CHECK(!first.is_followed_by({1, 12, 1, weights + 36, state + 32}, 4));
    CHECK(!first.is_followed_by({1, 12, 1, weights + 32, state + 36}, 4));
    tensor_memory const stateless{1, 4, 8, weights, nullptr};
    CHECK(stateless.is_followed_by({1, 12, 1, weights + 32, nullptr}, 4));
    state_shape const shape{4, 2, 64};
    CHECK(shape.arrays() == 3);
    CHECK(shape.place(first, 0) == weights);
    CHECK(shape.place(first, 1) == state);
    CHECK(shape.place(first, 2) == state + 64);
}
