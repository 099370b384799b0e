// herring: tests of base/shared_handler.hpp: it is called with the failure; base/shared_handler_test.cpp has the rest.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/shared_handler.hpp"

#include "doctest/doctest.h"

#include <string>

TEST_CASE("failure_handler: is called with the failure") {
    std::string heard;
    herring::detail::failure_handler const called = [&heard](herring::failure const& why) {
        heard = why.text;
    };
    called(herring::failure::make(herring::errc::timeout, 0, 1, "test", "text"));
    CHECK(heard == "text");
}
