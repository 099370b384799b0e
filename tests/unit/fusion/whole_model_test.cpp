// herring: tests of fusion/fusion.hpp: whole_model.
// SPDX-License-Identifier: Apache-2.0
#include "herring/fusion/fusion.hpp"

#include "doctest/doctest.h"

#include <string_view>
#include <type_traits>

TEST_CASE("whole_model: nothing closes the one bucket") {
    using herring::fusion::whole_model;
    static_assert(!whole_model::closes({}));
    static_assert(!whole_model::closes({.bucket_bytes = std::size_t{1} << 40, .bucket_tensors = 1'000'000}));
    CHECK(whole_model::name == std::string_view("whole_model"));
    CHECK(std::is_empty_v<whole_model>);
}
