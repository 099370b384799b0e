// herring: tests of ensemble/change.hpp: who is in the program's handler, and who is not.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/change.hpp"

#include "doctest/doctest.h"

#include <thread>
#include <vector>

namespace ensemble_change_teller_test {

using namespace herring::detail::ensembles;
using herring::change;
using herring::change_kind;

TEST_CASE(
    "change teller: the thread that calls the handler is in it, others are not, and nobody is afterwards") {
    struct seen {
        change_kind what;
        bool mine, others;
    };
    std::vector<seen> all;
    change_teller* itself = nullptr;
    change_teller teller(change_handler([&](change const& c) {
        bool others = true;
        std::thread([&] { others = itself->is_in_handler(); }).join();
        all.push_back({c.what, itself->is_in_handler(), others});
    }));
    itself = &teller;
    CHECK(static_cast<bool>(teller));
    CHECK(!teller.is_in_handler());
    teller.tell({.what = change_kind::lost});
    CHECK(!teller.is_in_handler());
    std::thread([&] { teller.tell({.what = change_kind::returned}); }).join(); // another one, later
    CHECK(!teller.is_in_handler());
    REQUIRE(all.size() == 2);
    CHECK(all[0].what == change_kind::lost);
    CHECK(all[1].what == change_kind::returned);
    for (seen const& each : all) {
        CHECK(each.mine);
        CHECK(!each.others);
    }
}

TEST_CASE("change teller: without a handler there is nobody to tell") {
    change_teller const nobody{change_handler{}};
    CHECK(!static_cast<bool>(nobody));
    CHECK(!nobody.is_in_handler());
}

} // namespace ensemble_change_teller_test
