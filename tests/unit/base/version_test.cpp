// herring: tests of version.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/version.hpp"

#include "doctest/doctest.h"

#include <string>

TEST_CASE("version: the number and the text say the same") {
    std::string const text = std::to_string(herring::version / 10000) + "." +
                             std::to_string(herring::version / 100 % 100) + "." +
                             std::to_string(herring::version % 100);
    CHECK(text == herring::version_string);
}
