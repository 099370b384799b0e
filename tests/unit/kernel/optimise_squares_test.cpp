// herring: tests of kernel/optimise.hpp: the value, its one order of additions, and every length.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/optimise.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <limits>
#include <vector>

namespace {
template <class Element> Element number(double value) {
    return static_cast<Element>(static_cast<herring::accumulator<Element>>(value));
}
/// By plain additions in the order that is documented.
template <class Element> double in_order(std::vector<Element> const& values) {
    double sums[8] = {}, all = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        double volatile square = static_cast<double>(static_cast<herring::accumulator<Element>>(values[i]));
        square = square * square;
        sums[i % 8] += square;
    }
    for (double const sum : sums) all += sum;
    return all;
}
} // namespace

TEST_CASE_TEMPLATE("squares: the sum in its order, of every length", Element, float, double,
                   herring::bfloat16, herring::float16) {
    for (std::size_t n = 0; n < 70; ++n) {
        std::vector<Element> values;
        for (std::size_t i = 0; i < n; ++i)
            values.push_back(number<Element>(0.1 * static_cast<double>(i) - 2.7));
        CHECK(herring::kernel::sum_of_squares(values.data(), n) == in_order(values));
    }
}

TEST_CASE("squares: large numbers do not overflow, and what is not finite stays so") {
    std::vector<float> values(40, std::numeric_limits<float>::max());
    double const sum = herring::kernel::sum_of_squares(values.data(), values.size());
    CHECK(sum - sum == 0);
    values[33] = std::numeric_limits<float>::quiet_NaN();
    double const bad = herring::kernel::sum_of_squares(values.data(), values.size());
    CHECK(bad != bad);
}
