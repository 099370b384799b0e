// herring: tests of ensemble/row_head.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/row_head.hpp"

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
    for (float const x : {nan, infinite, -infinite}) {
        CHECK(!with([x](row_head& h) { h.origin = x; }));
        CHECK(!with([x](row_head& h) { h.sum = x; }));
        CHECK(!with([x](row_head& h) { h.entropy = x; }));
    }
    CHECK(!with([](row_head& h) { h.sum = 0.9f; }));
    CHECK(!with([](row_head& h) { h.sum = 12; }));
    CHECK(!with([](row_head& h) { h.entropy = -0.1f; }));
    CHECK(!with([](row_head& h) { h.top = 10; }));
    std::vector<std::byte> bytes(20);
    good.write(std::span(bytes).subspan(1));
    CHECK(row_head::read(std::span(bytes).subspan(1)).top == 9);
}

} // namespace row_head_test
