// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include <span>
#include <string_view>
#include <vector>

#include "doctest/doctest.h"

namespace median_test {

using median = herring::combine::median<herring::space::value>;
static_assert(median::name == std::string_view("median<value>"));

TEST_CASE("median: of an even number the mean of the middle two, which does not overflow") {
    std::vector<float> odd{5, 1, 3}, even{3e38f, 1, 3.2e38f, 0}, one{7};
    CHECK(median::combine(std::span<float>(odd), {}) == 3);
    CHECK(median::combine(std::span<float>(even), {}) == 1.5e38f + 0.5f);
    even = {3e38f, 3e38f, 3e38f, 3e38f};
    CHECK(median::combine(std::span<float>(even), {}) == 3e38f);
    CHECK(median::combine(std::span<float>(one), {}) == 7);
}

} // namespace median_test
