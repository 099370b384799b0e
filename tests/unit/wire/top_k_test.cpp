// herring: tests of wire/codecs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/codecs.hpp"

#include <string_view>

#include "doctest/doctest.h"

namespace top_k_test {

using herring::wire::top_k;
static_assert(top_k<64>::name == std::string_view("top_k<64>") &&
              top_k<1024>::name == std::string_view("top_k<1024>"));
static_assert(top_k<64>::facts.entries && top_k<64>::count(1000) == 64 && top_k<64>::count(3) == 3);
static_assert(herring::wire_supports<top_k<64>, herring::bfloat16> &&
              !herring::wire_supports<top_k<64>, double>);

} // namespace top_k_test
