// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include <span>
#include <string_view>
#include <vector>

#include "doctest/doctest.h"

namespace trimmed_mean_test {

template <unsigned Permille> using trimmed = herring::combine::trimmed_mean<herring::space::value, Permille>;
static_assert(trimmed<200>::name == std::string_view("trimmed_mean<value, 200>"));
static_assert(trimmed<5>::name == std::string_view("trimmed_mean<value, 5>"));

template <unsigned Permille> float of(std::vector<float> rows) {
    return trimmed<Permille>::combine(std::span<float>(rows), {});
}
TEST_CASE("trimmed mean: counts those who came") {
    CHECK(of<200>({100, 1, 2, 3}) == 26.5f);
    CHECK(of<200>({100, 1, 2, 3, -100}) == 2);
    CHECK(of<250>({100, 1, 3, -100}) == 2);
    CHECK(of<499>({100, 1, 3, -100, 2}) == 2);
    CHECK(of<0>({4, 2}) == 3);
    CHECK(of<400>({7}) == 7);
}

} // namespace trimmed_mean_test
