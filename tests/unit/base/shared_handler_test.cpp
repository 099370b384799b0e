// herring: tests of base/shared_handler.hpp: what is kept is called, and destroyed once.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/shared_handler.hpp"

#include "doctest/doctest.h"
#include "herring/error.hpp"

#include <memory>
#include <string>
#include <utility>

using herring::errc;
using herring::failure;
using failure_handler = herring::detail::shared_handler<failure>;

namespace {
int plain_calls = 0;
void plain(failure const&) { ++plain_calls; }
} // namespace

TEST_CASE("shared_handler: nothing may be called") {
    failure_handler const none;
    CHECK_FALSE(none);
    none({});
}

TEST_CASE("shared_handler: a lambda, a function, a copy and what was moved") {
    std::string heard;
    failure_handler called = [&heard](failure const& why) { heard += why.text; };
    REQUIRE(called);
    called(failure::make(errc::timeout, 0, 1, "test", "one"));
    failure_handler copy = called;
    copy(failure::make(errc::timeout, 0, 1, "test", "two"));
    failure_handler const moved = std::move(copy);
    moved(failure::make(errc::timeout, 0, 1, "test", "three"));
    CHECK(heard == "onetwothree");
    called = plain;
    called({});
    CHECK(plain_calls == 1);
    CHECK(heard == "onetwothree");
}

TEST_CASE("shared_handler: what it holds lives as long as the last copy") {
    auto const alive = std::make_shared<int>(0);
    failure_handler first = [alive](failure const&) { ++*alive; };
    CHECK(alive.use_count() == 2);
    {
        failure_handler const second = first;
        first = failure_handler();
        CHECK(alive.use_count() == 2);
        second({});
    }
    CHECK(alive.use_count() == 1);
    CHECK(*alive == 1);
}

TEST_CASE("failure_handler: is called with the failure") {
    std::string heard;
    herring::detail::failure_handler const called = [&heard](herring::failure const& why) {
        heard = why.text;
    };
    called(herring::failure::make(herring::errc::timeout, 0, 1, "test", "text"));
    CHECK(heard == "text");
}
