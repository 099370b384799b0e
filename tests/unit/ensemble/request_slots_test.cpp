// herring: tests of ensemble/request_slots.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_slots.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace ensemble_slots_test {

using namespace herring::detail::ensembles;

TEST_CASE("slots: no id comes twice, and one that has ended is found no more") {
    for (std::size_t const size : {1u, 2u, 3u, 64u}) {
        slot_pool pool(size, 2);
        std::set<std::uint64_t> ids;
        for (int round = 0; round < 50; ++round) {
            std::vector<slot_index> taken;
            while (pool.any_free()) {
                taken.push_back(pool.take(false, 0));
                std::uint64_t const id = pool[taken.back()].id;
                CHECK(ids.insert(id).second);
                CHECK((id & slot_pool::sent_bit) != 0);
                CHECK(pool.find(id) == taken.back());
            }
            CHECK(taken.size() == size);
            CHECK(pool.in_flight() == size);
            for (slot_index const s : taken) {
                std::uint64_t const id = pool[s].id;
                pool.release(s);
                CHECK(pool.find(id) == no_slot);
            }
        }
    }
}

TEST_CASE("slots: ids that the user gives are found beside the others") {
    slot_pool pool(4, 1);
    slot_index const sent = pool.take(false, 0), expected = pool.take(true, 77), zero = pool.take(true, 0);
    CHECK(pool.find(77) == expected);
    CHECK(pool.find(0) == zero);
    CHECK(pool.find(pool[sent].id) == sent);
    CHECK(pool.find(78) == no_slot);
    CHECK(pool.find(~std::uint64_t{0}) == no_slot);
    CHECK(pool.expected() == 2);
    pool.release(expected);
    CHECK(pool.find(77) == no_slot);
    CHECK(pool.expected() == 1);
}

TEST_CASE("slots: what is in flight stays when the roster grows") {
    slot_pool pool(2, 1);
    slot_index const s = pool.take(false, 0);
    pool.member(s, 0).latency = 42;
    pool.asked(s)[0] = 5;
    pool.rows(s)[0].place = 9;
    pool.grow(3);
    CHECK(pool.member(s, 0).latency == 42);
    CHECK(pool.asked(s)[0] == 5);
    CHECK(pool.rows(s)[0].place == 9);
    pool.member(s, 2).latency = 1;
    CHECK(pool.member(s, 1).latency == -1);
}

} // namespace ensemble_slots_test

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
