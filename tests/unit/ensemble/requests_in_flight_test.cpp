// herring: memory of requests in flight, and lists through them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_state.hpp"

#include "doctest/doctest.h"

#include <cstdint>
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
