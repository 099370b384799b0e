// herring: tests of ensemble/request_slots.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_slots.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>

namespace ensemble_due_queue_test {

using namespace herring::detail::ensembles;

TEST_CASE("due_queue: empty, nothing is ever due") {
    due_queue q(4);
    CHECK(q.empty());
    CHECK(q.time() == never_ns);
    q.erase(2);
    CHECK(q.empty());
}

TEST_CASE("due_queue: the earliest first, of one time the oldest, as times change and slots go") {
    std::mt19937 random(11);
    for (std::size_t const slots : {1u, 2u, 5u, 64u}) {
        due_queue q(slots);
        std::map<slot_index, std::pair<std::int64_t, std::uint64_t>> model; // time, order
        std::uint64_t order = 0;
        for (int step = 0; step < 5000; ++step) {
            slot_index const slot = static_cast<slot_index>(random() % slots);
            if (random() % 3 == 0) {
                q.erase(slot);
                model.erase(slot);
            } else {
                std::int64_t const time = random() % 20;
                if (model.count(slot) == 0) model[slot].second = ++order;
                model[slot].first = time;
                q.set(slot, time, model[slot].second);
            }
            REQUIRE(q.empty() == model.empty());
            if (model.empty()) continue;
            auto const first = std::min_element(
                model.begin(), model.end(), [](auto const& a, auto const& b) { return a.second < b.second; });
            CHECK(q.first() == first->first);
            CHECK(q.time() == first->second.first);
        }
    }
}

} // namespace ensemble_due_queue_test
