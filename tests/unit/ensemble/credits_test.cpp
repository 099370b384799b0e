// herring: tests of ensemble/request_roster.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_roster.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <map>
#include <random>

namespace ensemble_credits_test {

using namespace herring::detail::ensembles;

TEST_CASE("credits: as many as there are, and each comes back once") {
    credits c(3);
    CHECK(c.size() == 3);
    for (std::uint64_t id : {10u, 13u, 16u}) { // all want the same place
        CHECK(c.left());
        c.take(id, static_cast<std::int64_t>(id) * 5);
    }
    CHECK_FALSE(c.left());
    CHECK(c.find(19) == nullptr);
    CHECK(c.find(0) == nullptr);
    REQUIRE(c.find(13) != nullptr);
    CHECK(c.find(13)->asked == 65);
    c.give_back(*c.find(13));
    CHECK(c.find(13) == nullptr);
    CHECK(c.used() == 2);
    REQUIRE(c.find(16) != nullptr); // behind the gap
    c.clear();
    CHECK(c.used() == 0);
    CHECK(c.find(10) == nullptr);
}

TEST_CASE("credits: against a map") {
    std::mt19937 random(3);
    for (std::size_t const size : {1u, 2u, 7u, 64u}) {
        credits c(size);
        std::map<std::uint64_t, std::int64_t> model;
        std::uint64_t next = std::uint64_t{1} << 63;
        for (std::int64_t step = 0; step < 3000; ++step) {
            if (random() % 2 == 0 && c.left()) {
                next += 1 + random() % 5;
                c.take(next, step);
                model[next] = step;
            } else if (!model.empty()) {
                auto const at =
                    std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
                unanswered* const found = c.find(at->first);
                REQUIRE(found != nullptr);
                CHECK(found->id == at->first);
                CHECK(found->asked == at->second);
                c.give_back(*found);
                model.erase(at);
            }
            CHECK(c.used() == model.size());
            CHECK(c.left() == (model.size() < size));
        }
        std::size_t seen = 0;
        c.for_each([&](unanswered const& ask) { seen += model.count(ask.id); });
        CHECK(seen == model.size());
    }
}

} // namespace ensemble_credits_test
