// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include "doctest/doctest.h"

#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace combine_test {

struct first { // of the rows
    using axis = herring::axes::combine;
    using space = herring::space::value;
    using weighting = herring::weighting::none;
    static constexpr char const* name = "first";
    static constexpr herring::combine_facts facts{.takes_vectors = true};
    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0];
    }
};
struct of_logits : first {
    using space = herring::space::logit;
};
struct may_throw : first {
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) {
        return rows[0];
    }
};
struct of_numbers : first {
    static float combine(std::span<float> rows, std::span<float const>) noexcept { return rows[0]; }
};
struct says_so : of_numbers {
    static constexpr herring::combine_facts facts{};
};
static_assert(herring::combine_policy<first> && herring::check<herring::axes::combine, first>::value);
static_assert(!herring::combine_policy<may_throw> && !herring::combine_policy<of_numbers> &&
              herring::combine_policy<says_so>);
static_assert(herring::combine_supports<first, double> && !herring::combine_supports<first, int>);
static_assert(herring::combine_supports<of_logits, herring::float16> &&
              !herring::combine_supports<of_logits, double>);

} // namespace combine_test

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

namespace mean_test {

using mean = herring::combine::mean<herring::space::probability>;
static_assert(mean::name == std::string_view("mean<probability, none>") && std::is_empty_v<mean>);
static_assert(mean::facts.linear && herring::combine_policy<mean>);

TEST_CASE("mean: by its weights") {
    std::array<float, 3> rows{1, 2, 4}, weights{0.5f, 0.25f, 0.25f};
    CHECK(mean::combine(std::span<float>(rows), std::span<float const>(weights)) == 2);
}

} // namespace mean_test

namespace median_test {

using median = herring::combine::median<herring::space::value>;
static_assert(median::name == std::string_view("median<value>"));

TEST_CASE("median: of an even number the mean of the middle two, which does not overflow") {
    std::vector<float> odd{5, 1, 3}, even{3e38f, 1, 3.2e38f, 0}, one{7};
    CHECK(median::combine(std::span<float>(odd), {}) == 3);
    CHECK(median::combine(std::span<float>(even), {}) == 1.5e38f + 0.5f);
    even = {3e38f, 3e38f, 3e38f, 3e38f};
    CHECK(median::combine(std::span<float>(even), {}) == 3e38f);
    CHECK(median::combine(std::span<float>(one), {}) == 7);
}

} // namespace median_test

namespace trimmed_mean_test {

template <unsigned Permille> using trimmed = herring::combine::trimmed_mean<herring::space::value, Permille>;
static_assert(trimmed<200>::name == std::string_view("trimmed_mean<value, 200>"));
static_assert(trimmed<5>::name == std::string_view("trimmed_mean<value, 5>"));

template <unsigned Permille> float of(std::vector<float> rows) {
    return trimmed<Permille>::combine(std::span<float>(rows), {});
}
TEST_CASE("trimmed mean: counts those who came") {
    CHECK(of<200>({100, 1, 2, 3}) == 26.5f);
    CHECK(of<200>({100, 1, 2, 3, -100}) == 2);
    CHECK(of<250>({100, 1, 3, -100}) == 2);
    CHECK(of<499>({100, 1, 3, -100, 2}) == 2);
    CHECK(of<0>({4, 2}) == 3);
    CHECK(of<400>({7}) == 7);
}

} // namespace trimmed_mean_test

namespace vote_test {

using herring::combine::vote;
static_assert(vote<>::name == std::string_view("vote<none>") && vote<>::facts.votes &&
              herring::combine_policy<vote<>>);
static_assert(herring::combine_supports<vote<>, float> && !herring::combine_supports<vote<>, double>);

} // namespace vote_test
