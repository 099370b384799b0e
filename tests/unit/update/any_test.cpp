// herring: tests of update/any.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/any.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace update = herring::update;

namespace {
struct squares : update::sum {
    static constexpr char const* name = "squares";
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true, .with_finish = true};
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x * x; }
};
struct in_order : update::sum {
    static constexpr char const* name = "in_order";
    static constexpr herring::update_facts facts{.associative = false, .with_finish = true};
};

using rules = update::any<update::sum, update::average, update::max>;
using with_squares = update::any<update::sum, squares>;
using from_squares = update::any<squares, update::sum>;

std::string chosen(std::uint8_t number) {
    std::string name;
    herring::detail::with_rule<rules>(number,
                                      [&]<class Rule>(std::type_identity<Rule>) { name = Rule::name; });
    return name;
}
} // namespace

static_assert(herring::update_policy<rules> && herring::check<herring::axes::update, rules>::value);
static_assert(std::is_empty_v<rules> && std::is_trivial_v<rules>, "costs nothing to carry");
static_assert(rules::name == std::string_view("any<sum, average, max>"),
              "ranks compare lists by their names");
static_assert(rules::facts.takes_vectors && rules::facts.associative && !rules::facts.lifts);
static_assert(!update::any<update::sum, in_order>::facts.associative, "the least associative rule counts");
static_assert(with_squares::facts.lifts && from_squares::facts.lifts, "refused where devices sum");
static_assert(herring::update_supports<rules, float> && !herring::update_supports<rules, int>);
static_assert(!herring::detail::lists_rules<update::sum> && herring::detail::lists_rules<rules>);

// A rule of the list, and nothing else, is a rule of a call.
static_assert(std::is_convertible_v<update::max, rules::rule>);
static_assert(!std::is_convertible_v<update::min, rules::rule> &&
              !std::is_convertible_v<squares, rules::rule>);
static_assert(!std::is_convertible_v<int, rules::rule> && !std::is_default_constructible_v<rules::rule>);
static_assert(rules::rule(update::sum()).number() == 1 && rules::rule(update::max()).number() == 3);
static_assert(rules::rule(update::sum()) != rules::rule(update::max()));

TEST_CASE("any: the rule of a number, and the first where none is named") {
    CHECK(chosen(0) == "sum");
    CHECK(chosen(1) == "sum");
    CHECK(chosen(2) == "average");
    CHECK(chosen(3) == "max");
    CHECK(chosen(77) == "max"); // no rank sends it; it is a rule all the same
    REQUIRE(rules::names().size() == 3);
    CHECK(rules::names()[1] == std::string_view("average"));
    bool called = false;
    herring::detail::with_rule<update::min>(
        9, [&]<class Rule>(std::type_identity<Rule>) { called = std::is_same_v<Rule, update::min>; });
    CHECK(called);
}

TEST_CASE("any: as a rule it is its first") {
    CHECK(rules::combine(3, 4) == 7);
    CHECK(update::any<update::average, update::max>::finish(6.0, 3) == 2.0);
    CHECK(with_squares::lift(3) == 3);
    CHECK(from_squares::lift(3) == 9);
}
