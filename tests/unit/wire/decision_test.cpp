// herring: tests of wire/codecs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/codecs.hpp"

#include <string_view>

#include "doctest/doctest.h"

namespace decision_test {

using herring::wire::decision;
static_assert(decision<herring::wire::argmax>::name == std::string_view("decision<argmax>"));
static_assert(decision<>::facts.entries && decision<>::count(1000) == 1 && decision<>::count(0) == 0);

} // namespace decision_test
