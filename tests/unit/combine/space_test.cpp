// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include "doctest/doctest.h"

namespace space_test {

namespace space = herring::space;
namespace weighting = herring::weighting;
static_assert(herring::row_space<space::value> && herring::row_space<space::probability> &&
              !herring::row_space<int>);
static_assert(!space::value::of_logits && space::logit::of_logits && space::log_probability::of_logits);
static_assert(herring::row_weighting<weighting::none> && !herring::row_weighting<space::value>);
static_assert(!weighting::none::weighted && weighting::renormalised::normalised &&
              !weighting::as_given::normalised);

} // namespace space_test
