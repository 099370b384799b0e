// herring: the update policy `sum`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "doctest/doctest.h"

using herring::update::sum;

static_assert(std::is_empty_v<sum> && std::is_trivial_v<sum>, "costs nothing to carry");
static_assert(herring::update_policy<sum> && herring::check<herring::axes::update, sum>::value);
static_assert(sum::name == std::string_view("sum"));
static_assert(herring::update_supports<sum, float> && herring::update_supports<sum, double>);
static_assert(herring::update_supports<sum, herring::bfloat16> &&
              herring::update_supports<sum, herring::float16>);

static_assert(herring::update_supports<sum, std::int32_t> && herring::update_supports<sum, std::int64_t>);
static_assert(sum::finish(sum::combine(1.0f, 2.0f), 7) == 3.0f);
static_assert(sum::combine(std::numeric_limits<std::int32_t>::max(), 1) ==
                  std::numeric_limits<std::int32_t>::min(),
              "wraps");
static_assert(sum::combine(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
              std::numeric_limits<std::int64_t>::max());

TEST_CASE("a NaN of any rank is in the sum") { CHECK(std::isnan(sum::combine(1.0, std::nan("")))); }
