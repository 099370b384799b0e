// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include <array>
#include <span>
#include <string_view>
#include <type_traits>

#include "doctest/doctest.h"

namespace mean_test {

using mean = herring::combine::mean<herring::space::probability>;
static_assert(mean::name == std::string_view("mean<probability, none>") && std::is_empty_v<mean>);
static_assert(mean::facts.linear && herring::combine_policy<mean>);

TEST_CASE("mean: by its weights") {
    std::array<float, 3> rows{1, 2, 4}, weights{0.5f, 0.25f, 0.25f};
    CHECK(mean::combine(std::span<float>(rows), std::span<float const>(weights)) == 2);
}

} // namespace mean_test
