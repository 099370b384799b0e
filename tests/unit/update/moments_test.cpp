// herring: the update policies `moments` and `sample_moments`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/moments.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace moments_rules_test {

using herring::update::average;
using herring::update::moments;
using herring::update::sample_moments;

static_assert(std::is_empty_v<moments> && std::is_trivial_v<sample_moments>, "costs nothing to carry");
static_assert(herring::update_policy<moments> && herring::check<herring::axes::update, moments>::value);
static_assert(herring::update_policy<sample_moments> &&
              herring::check<herring::axes::update, sample_moments>::value);
static_assert(moments::name == std::string_view("moments") &&
                  sample_moments::name == std::string_view("sample_moments"),
              "ranks that name different ones are told so");
static_assert(herring::update_supports<moments, float> &&
              herring::update_supports<sample_moments, herring::bfloat16>);
static_assert(!herring::update_supports<moments, std::int64_t>);
static_assert(herring::detail::gives_deviations<moments> &&
              herring::detail::gives_deviations<sample_moments> &&
              !herring::detail::gives_deviations<average>);

} // namespace moments_rules_test

using namespace moments_rules_test;

TEST_CASE("moments: means are those of average; squares are divided by the ranks, or by one less") {
    for (int const ranks : {1, 2, 3, 8, 1000}) {
        float finished = 0;
        moments::with_finish<float>(ranks, [&](auto finish) { finished = finish(7.25f); });
        CHECK(finished == average::finish(7.25f, ranks));
        CHECK(sample_moments::finish(7.25f, ranks) == average::finish(7.25f, ranks));
        CHECK(moments::divisor_of_squares(ranks) == ranks);
        CHECK(sample_moments::divisor_of_squares(ranks) == ranks - 1);
    }
}
