// herring: tests of ensemble/frontend_state.hpp: rows wait in order, and none is taken in while they are checked.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_state.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ensemble_landed_rows_test {

namespace ensembles = herring::detail::ensembles;
using ensembles::row_check;

TEST_CASE("landed_rows: in the order in which they came, each with what its check said") {
    struct link {
    } a, b;
    ensembles::landed_rows<link> rows;
    std::byte const bytes[3] = {};
    CHECK(!rows.any());
    REQUIRE(rows.push(a, 1, 10, std::span(bytes, 1)));
    REQUIRE(rows.push(b, 2, 20, std::span(bytes, 2)));
    CHECK(rows.any());
    rows.begin_check();
    CHECK(!rows.push(a, 3, 30, bytes)); // it would be taken for checked
    CHECK(!rows.any());                 // for anybody else
    rows.check([](std::span<std::byte const> of) {
        return of.size() == 2 ? row_check::not_a_number : row_check::good;
    });
    std::vector<std::uint64_t> ids;
    rows.end_check([&](auto const& row) {
        ids.push_back(row.id);
        CHECK(row.from == (row.id == 1 ? &a : &b));
        CHECK(row.place == 10 * row.id);
        CHECK(row.is == (row.id == 1 ? row_check::good : row_check::not_a_number));
    });
    CHECK(ids == std::vector<std::uint64_t>{1, 2});
    CHECK(!rows.any());
    CHECK(rows.push(a, 3, 30, bytes));
}

TEST_CASE("landed_rows: has room for so many") {
    int link = 0;
    ensembles::landed_rows<int> rows;
    std::uint64_t count = 0;
    while (rows.push(link, count, 0, {})) REQUIRE(++count < 10'000);
    CHECK(count >= 16);
    std::uint64_t next = 0;
    rows.check([](std::span<std::byte const>) { return row_check::good; });
    rows.end_check([&](auto const& row) { CHECK(row.id == next++); });
    CHECK(next == count);
}

} // namespace ensemble_landed_rows_test
