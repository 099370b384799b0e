// herring: tests of ensemble/frontend_state.hpp: memory of requests in flight, and rows that wait in order.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_state.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ensemble_requests_in_flight_test {

namespace ensembles = herring::detail::ensembles;

TEST_CASE("ensemble requests_in_flight: each has its own memory") {
    ensembles::in_flight_sizes const sizes{3, 5, 100};
    CHECK(sizes.stride() == 128);
    CHECK(sizes.bytes() >= 3 * (5 * 24 + 128));
    ensembles::requests_in_flight all(sizes);
    REQUIRE(all.size() == 3);
    for (ensembles::slot_index i = 0; i < 3; ++i) {
        CHECK(all.result(i).size() == 100);
        CHECK(reinterpret_cast<std::uintptr_t>(all.result(i).data()) % 64 == 0);
        CHECK(all.rows(i).size() == 5);
        for (float& w : all.weights(i)) w = float(i);
        for (float& w : all.chosen(i)) w = float(10 + i);
        for (std::byte& b : all.result(i)) b = static_cast<std::byte>(i);
    }
    for (ensembles::slot_index i = 0; i < 3; ++i) {
        CHECK(all.weights(i)[4] == float(i));
        CHECK(all.chosen(i)[0] == float(10 + i));
        CHECK(all.result(i)[99] == static_cast<std::byte>(i));
    }
}

TEST_CASE("ensemble requests_in_flight: lists keep their order, whoever leaves") {
    ensembles::requests_in_flight all({4, 1, 0});
    ensembles::request_list list;
    auto const order = [&] {
        std::vector<ensembles::slot_index> found;
        ensembles::request_list copy = list;
        while (!copy.empty()) {
            found.push_back(copy.first());
            copy.remove(all.records(), copy.first());
        }
        list = {};
        for (ensembles::slot_index const i : found) list.append(all.records(), i);
        return found;
    };
    CHECK(list.empty());
    for (ensembles::slot_index const i : {2u, 0u, 3u, 1u}) list.append(all.records(), i);
    CHECK(order() == std::vector<ensembles::slot_index>{2, 0, 3, 1});
    list.remove(all.records(), 3);
    CHECK(order() == std::vector<ensembles::slot_index>{2, 0, 1});
    list.remove(all.records(), 1);
    list.remove(all.records(), 2);
    CHECK(order() == std::vector<ensembles::slot_index>{0});
    list.remove(all.records(), 0);
    CHECK(list.empty());
}

} // namespace ensemble_requests_in_flight_test

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
