// herring: tests of ensemble/dense_row.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dense_row.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "doctest/doctest.h"

namespace row_head_test {

using herring::detail::ensembles::row_head;

TEST_CASE("row head: facts that cannot be") {
    float const nan = std::numeric_limits<float>::quiet_NaN(),
                infinite = std::numeric_limits<float>::infinity();
    row_head const good{.origin = 3, .sum = 2, .entropy = 0.5f, .top = 9};
    CHECK(good.possible(10, true, 1));
    auto const with = [&](auto change) {
        row_head head = good;
        change(head);
        return head.possible(10, true, 1);
    };
    for (float const x : {nan, infinite, -infinite}) CHECK(!with([x](row_head& h) { h.origin = x; }));
    for (float const x : {nan, infinite, -infinite, 0.9f, 12.0f})
        CHECK(!with([x](row_head& h) { h.sum = x; }));
    CHECK(!with([](row_head& h) { h.top = 10; }));
    std::vector<std::byte> bytes(20);
    good.write(std::span(bytes).subspan(1));
    CHECK(row_head::read(std::span(bytes).subspan(1)).top == 9);
}

TEST_CASE("row head: a sum that is not that of the lanes") {
    auto const has = [](float sum, float of_lanes) { return row_head{.sum = sum}.has_sum(of_lanes); };
    CHECK(has(100, 100));
    CHECK(has(100.09f, 100));
    CHECK(has(99.91f, 100));
    CHECK(!has(1, 100));
    CHECK(!has(101, 100));
    CHECK(!has(std::numeric_limits<float>::infinity(), 100));
    CHECK(!has(std::numeric_limits<float>::quiet_NaN(), 100));
}

TEST_CASE("row head: an entropy that no row of this largest probability has") {
    auto const has = [](double entropy, std::size_t n, float most) {
        return row_head{.entropy = static_cast<float>(entropy)}.has_entropy(n, most);
    };
    for (std::size_t const n : {1u, 2u, 10u, 70'000u}) {
        CAPTURE(n);
        double const uniform = std::log(static_cast<double>(n));
        CHECK(has(uniform, n, 1 / static_cast<float>(n)));
        CHECK(has(uniform, n, 0));
        CHECK(has(0, n, 1));
        CHECK(has(0, n, 0));
        for (float const most : {0.0f, 1.0f, 1 / static_cast<float>(n)}) {
            CHECK(!has(uniform + 0.5, n, most));
            CHECK(!has(-0.1, n, most));
            CHECK(!has(std::numeric_limits<double>::quiet_NaN(), n, most));
        }
        if (n == 1) continue;
        // Half of the mass in one element: the rest is in one other, or in all of them.
        CHECK(has(std::log(2), n, 0.5f));
        CHECK(has(std::log(2) + 0.5 * std::log(static_cast<double>(n - 1)), n, 0.5f));
        CHECK(!has(std::log(2) - 0.5, n, 0.5f));
        CHECK(!has(std::log(2) + 0.5 * std::log(static_cast<double>(n - 1)) + 0.5, n, 0.5f));
    }
}

} // namespace row_head_test
