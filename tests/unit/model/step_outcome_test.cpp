// herring: tests of model/step_outcome.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/step_outcome.hpp"

#include "doctest/doctest.h"

#include <string>

TEST_CASE("step: outcomes have names") {
    CHECK(std::string(to_string(herring::step::exchanged)) == "exchanged");
    CHECK(std::string(to_string(herring::step::partial)) == "partial");
    CHECK(std::string(to_string(herring::step::local)) == "local");
    CHECK(std::string(to_string(herring::step::skipped)) == "skipped");
    CHECK(std::string(to_string(static_cast<herring::step>(9))) == "unknown");
}
