// herring: the update policy `product`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/rules.hpp"

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "doctest/doctest.h"

using herring::update::product;

static_assert(std::is_empty_v<product> && std::is_trivial_v<product>, "costs nothing to carry");
static_assert(herring::update_policy<product> && herring::check<herring::axes::update, product>::value);
static_assert(product::name == std::string_view("product"));
static_assert(herring::update_supports<product, float> &&
              herring::update_supports<product, herring::bfloat16>);
static_assert(herring::update_supports<product, std::int32_t> &&
              herring::update_supports<product, unsigned long>);
static_assert(product::finish(product::combine(1.5f, 2.0f), 7) == 3.0f);

TEST_CASE("product: integers wrap") {
    CHECK(product::combine(std::numeric_limits<std::int32_t>::max(), 2) == -2);
    CHECK(product::combine(std::int64_t{1} << 62, std::int64_t{4}) == 0);
    CHECK(product::combine(0x8000'0001u, 2u) == 2u);
}
