// herring: changes of a member, and the handler that is told.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/change.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <string>

namespace ensemble_change_test {

using namespace herring;

TEST_CASE("ensemble change: every kind has a name") {
    for (int i = 0; i < change_kinds; ++i)
        CHECK(std::string(to_string(static_cast<change_kind>(i))) != "unknown");
    CHECK(std::string(to_string(static_cast<change_kind>(change_kinds))) == "unknown");
}

TEST_CASE("ensemble change: copies of a handler share its state, and it goes with the last") {
    auto const calls = std::make_shared<int>(0);
    {
        detail::ensembles::change_handler handler([calls](change const& c) {
            CHECK(c.name == "a");
            ++*calls;
        });
        detail::ensembles::change_handler const copy = handler;
        detail::ensembles::change_handler const moved = std::move(handler);
        CHECK(static_cast<bool>(copy));
        copy({.what = change_kind::lost, .name = "a"});
        moved({.name = "a"});
        CHECK(*calls == 2);
        CHECK(calls.use_count() == 2);
    }
    CHECK(calls.use_count() == 1);
    detail::ensembles::change_handler const none;
    none({});
    CHECK(!none);
}

} // namespace ensemble_change_test
