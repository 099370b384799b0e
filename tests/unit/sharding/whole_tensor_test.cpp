// herring: tests of sharding/sharding.hpp: whole_tensor.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <string_view>
#include <type_traits>
#include <vector>

using herring::bucket_tensor;
using herring::sharding::whole_tensor;

TEST_CASE("whole_tensor: tensor i, whole, to server i mod S; empty ones to nobody") {
    std::vector<bucket_tensor> const tensors{{4, 0, 32}, {5, 32, 0}, {6, 32, 16}, {7, 48, 160}};
    std::vector<std::size_t> seen;
    whole_tensor::shard({.elements = 208, .line_elements = 16, .tensors = tensors}, herring::roles::both(3),
                        [&](std::size_t offset, std::size_t elements, herring::server_id server) {
                            seen.insert(seen.end(), {offset, elements, server.place()});
                        });
    CHECK(seen == std::vector<std::size_t>{0, 32, 1, 32, 16, 0, 48, 160, 1});
    CHECK(whole_tensor::name == std::string_view("whole_tensor"));
    CHECK(std::is_empty_v<whole_tensor>);
}
