// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include <string_view>

#include "doctest/doctest.h"

namespace vote_test {

using herring::combine::vote;
static_assert(vote<>::name == std::string_view("vote<none>") && vote<>::facts.votes &&
              herring::combine_policy<vote<>>);
static_assert(herring::combine_supports<vote<>, float> && !herring::combine_supports<vote<>, double>);

} // namespace vote_test
