// herring: the largest elements of rows in many orders, against a sort.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/entry_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "doctest/doctest.h"

#include "ensemble_rows.hpp"
#include "herring/element.hpp"

namespace largest_entries_test {

using herring::entry;
using herring::detail::ensembles::largest_entries;

/// Ids of all that is not masked, the largest first, of equal ones the lowest id.
std::vector<std::uint32_t> sorted(std::vector<float> const& row) {
    std::vector<std::uint32_t> ids(row.size());
    std::iota(ids.begin(), ids.end(), 0u);
    float const* const values = row.data();
    std::stable_sort(ids.begin(), ids.end(),
                     [values](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
    while (!ids.empty() && row[ids.back()] == -ensemble_rows::infinite) ids.pop_back();
    return ids;
}
std::vector<entry> largest_of(std::vector<float> const& row, std::vector<std::uint32_t> ids,
                              std::size_t count) {
    if (ids.size() > count) ids.resize(count);
    std::sort(ids.begin(), ids.end());
    std::vector<entry> due;
    for (auto const id : ids) due.push_back({id, row[id]});
    return due;
}

template <class Element, std::size_t Most> void check_row(std::vector<float> row) {
    std::vector<Element> as(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        as[i] = static_cast<Element>(row[i]);
        row[i] = static_cast<float>(as[i]);
    }
    largest_entries<Element, Most> of{std::span<Element const>(as)};
    auto const most = std::max_element(row.begin(), row.end());
    CHECK_FALSE(of.has_nan());
    CHECK(of.largest() == *most);
    CHECK(of.index_of_largest() == static_cast<std::size_t>(most - row.begin()));
    auto const ids = sorted(row);
    for (std::size_t const count : {std::size_t{1}, Most / 2 + 1, Most}) {
        largest_entries<Element, Most> again{std::span<Element const>(as)};
        auto const found = again.first(count);
        auto const due = largest_of(row, ids, count);
        REQUIRE(found.size() == due.size());
        std::size_t same = 0;
        for (std::size_t i = 0; i < due.size(); ++i) same += found[i] == due[i];
        CHECK(same == due.size());
    }
}

template <class Element, std::size_t Most> void check_orders(std::size_t elements) {
    constexpr float masked = -ensemble_rows::infinite;
    auto const drawn = ensemble_rows::drawn(elements, static_cast<std::uint32_t>(elements));
    auto rising = drawn, falling = drawn, few = drawn, mostly_masked = drawn, equal = drawn;
    std::sort(rising.begin(), rising.end());
    std::sort(falling.begin(), falling.end(), [](float a, float b) { return a > b; });
    for (std::size_t i = 0; i < elements; ++i) {
        few[i] = static_cast<float>(i * 7919 % 5); // many ties
        equal[i] = 1;
        if (i % 97 != 0) mostly_masked[i] = masked;
    }
    auto late = equal; // ties, and behind them something larger
    late.back() = 2;
    for (auto const& row : {drawn, rising, falling, few, mostly_masked, equal, late})
        check_row<Element, Most>(row);
}

TEST_CASE("largest entries: in any order, ids ascending, of equal ones the lowest ids, none that is masked") {
    for (std::size_t const elements : {1u, 2u, 15u, 16u, 31u, 33u, 64u, 100u, 1000u, 4099u, 20'000u}) {
        check_orders<float, 64>(elements);
        check_orders<float, 3>(elements);
        check_orders<herring::bfloat16, 64>(elements);
        check_orders<herring::float16, 5>(elements);
    }
    check_orders<float, 1>(3000);
    check_orders<float, 1024>(40'000);
}

TEST_CASE("largest entries: a NaN is seen wherever it is, and rows of nothing are") {
    for (std::size_t const elements : {1u, 16u, 40u, 1000u})
        for (std::size_t at = 0; at < elements; at += 13) {
            auto row = ensemble_rows::drawn(elements, 3);
            row[at] = std::numeric_limits<float>::quiet_NaN();
            CHECK(largest_entries<float, 8>{std::span<float const>(row)}.has_nan());
        }
    std::vector<float> const masked(100, -ensemble_rows::infinite);
    largest_entries<float, 8> none{std::span<float const>(masked)};
    CHECK(none.largest() == -ensemble_rows::infinite);
    CHECK(none.first(8).empty());
    CHECK(largest_entries<float, 8>{std::span<float const>()}.largest() == -ensemble_rows::infinite);
}

} // namespace largest_entries_test
