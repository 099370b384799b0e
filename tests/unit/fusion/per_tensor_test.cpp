// herring: tests of fusion/fusion.hpp: per_tensor.
// SPDX-License-Identifier: Apache-2.0
#include "herring/fusion/fusion.hpp"

#include "doctest/doctest.h"

#include <string_view>
#include <type_traits>

TEST_CASE("per_tensor: every tensor closes its bucket") {
    using herring::fusion::per_tensor;
    static_assert(per_tensor::closes({}));
    static_assert(per_tensor::closes({.bucket_bytes = 1 << 30, .bucket_tensors = 1, .next_bytes = 5}));
    CHECK(per_tensor::name == std::string_view("per_tensor"));
    CHECK(std::is_empty_v<per_tensor>);
}
