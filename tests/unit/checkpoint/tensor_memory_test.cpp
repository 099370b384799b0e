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
    CHECK(first.is_followed_by({1, 12, 1, weights + 32, state + 32}, 4, 4));
    CHECK(!first.is_followed_by({2, 12, 1, weights + 32, state + 32}, 4, 4));
    CHECK(!first.is_followed_by({1, 13, 1, weights + 32, state + 32}, 4, 4));
    CHECK(!first.is_followed_by({1, 12, 1, weights + 36, state + 32}, 4, 4));
    CHECK(!first.is_followed_by({1, 12, 1, weights + 32, state + 36}, 4, 4));
    tensor_memory const stateless{1, 4, 8, weights, nullptr};
    CHECK(stateless.is_followed_by({1, 12, 1, weights + 32, nullptr}, 4, 4));
    // Weights of 16 bits, and numbers of 32.
    CHECK(first.is_followed_by({1, 12, 1, weights + 16, state + 32}, 2, 4));
    CHECK(!first.is_followed_by({1, 12, 1, weights + 16, state + 16}, 2, 4));
    state_shape const shape{2, 4, 2, 64};
    CHECK(shape.arrays() == 3);
    CHECK(shape.bytes_of(0) == 2);
    CHECK(shape.bytes_of(2) == 4);
    CHECK(shape.element_bytes() == 10);
    CHECK(shape.place(first, 0) == weights);
    CHECK(shape.place(first, 1) == state);
    CHECK(shape.place(first, 2) == state + 64);
}
