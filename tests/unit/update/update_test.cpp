// herring: tests of update/update.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/update/update.hpp"

#include <cstdint>
#include <type_traits>

#include "doctest/doctest.h"

namespace {

struct product { // of floating-point numbers
    using axis = herring::axes::update;
    static constexpr char const* name = "product";
    template <class T> static constexpr bool supports = std::is_floating_point_v<T>;
    static constexpr herring::update_facts facts{.takes_vectors = true};
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept { return a * b; }
    template <class Acc> static constexpr Acc finish(Acc total, int) noexcept { return total; }
};
struct of_another_axis : product {
    using axis = herring::axes::sharding;
};
struct silent : product {
  private:
    using product::name;
};
struct says_nothing : product {
  private:
    template <class T> static constexpr bool supports = true;
};
struct may_throw : product {
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) { return a * b; }
};
struct forgets_the_ranks : product {
    template <class Acc> static constexpr Acc finish(Acc total) noexcept { return total; }
};
struct widens : product {
    template <class Acc> static constexpr long double combine(Acc a, Acc b) noexcept { return a * b; }
};
struct hides_its_facts : product {
  private:
    using product::facts;
};
struct states_a_fact_beside_them : product {
    static constexpr bool associative = false;
};
struct lifts_unannounced : product {
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x * x; }
};
struct lifts : lifts_unannounced {
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true};
};
struct announces_a_lift : product {
    static constexpr herring::update_facts facts{.lifts = true};
};
struct announces_a_finish : product {
    static constexpr herring::update_facts facts{.with_finish = true};
};
struct of_numbers : product {
    static float combine(float a, float b) noexcept { return a * b; }
};
struct of_numbers_and_says_so : of_numbers {
    static constexpr herring::update_facts facts{.takes_vectors = false};
};

using four_floats [[gnu::vector_size(16)]] = float;
using two_longs [[gnu::vector_size(16)]] = std::int64_t;

} // namespace

TEST_CASE("update: the concept") {
    CHECK(herring::update_policy<product>);
    CHECK(herring::check<herring::axes::update, product>::value);
    CHECK_FALSE(herring::update_policy<of_another_axis>);
    CHECK_FALSE(herring::update_policy<silent>);
    CHECK_FALSE(herring::update_policy<says_nothing>);
    CHECK_FALSE(herring::update_policy<may_throw>);
    CHECK_FALSE(herring::update_policy<forgets_the_ranks>);
    CHECK_FALSE(herring::update_policy<widens>);
    CHECK_FALSE(herring::update_policy<hides_its_facts>);
    CHECK_FALSE(herring::update_policy<states_a_fact_beside_them>);
    CHECK_FALSE(herring::update_policy<lifts_unannounced>);
    CHECK(herring::update_policy<lifts>);
    CHECK_FALSE(herring::update_policy<announces_a_lift>);
    CHECK_FALSE(herring::update_policy<announces_a_finish>);
    CHECK_FALSE(herring::update_policy<of_numbers>);
    CHECK(herring::update_policy<of_numbers_and_says_so>);
}

TEST_CASE("update: each clause is broken alone") {
    CHECK_FALSE(herring::update_names_its_axis<of_another_axis>);
    CHECK(herring::update_has_a_name<of_another_axis>);
    CHECK_FALSE(herring::update_has_a_name<silent>);
    CHECK(herring::update_says_what_it_supports<silent>);
    CHECK_FALSE(herring::update_says_what_it_supports<says_nothing>);
    CHECK(herring::update_combines<says_nothing>);
    CHECK_FALSE(herring::update_combines<may_throw>);
    CHECK_FALSE(herring::update_combines<widens>);
    CHECK(herring::update_finishes<may_throw>);
    CHECK_FALSE(herring::update_finishes<forgets_the_ranks>);
    CHECK(herring::update_combines<forgets_the_ranks>);
    CHECK_FALSE(herring::update_states_facts<hides_its_facts>);
    CHECK_FALSE(herring::update_states_facts<states_a_fact_beside_them>);
    CHECK(herring::update_combines<of_numbers>);
    CHECK_FALSE(herring::update_takes_vectors<of_numbers>);
}

TEST_CASE("update: which element types a rule makes sense for") {
    CHECK(herring::update_supports<product, float>);
    CHECK(herring::update_supports<product, double>);
    CHECK_FALSE(herring::update_supports<product, std::int32_t>);
    CHECK_FALSE(herring::update_supports<product, long double>); // it would, but no tensor consists of them
    CHECK_FALSE(herring::update_supports<may_throw, float>);
}

TEST_CASE("update: a lane of a number is itself, of a vector its element") {
    CHECK(std::is_same_v<herring::update::lane<float>, float>);
    CHECK(std::is_same_v<herring::update::lane<std::int64_t>, std::int64_t>);
    CHECK(std::is_same_v<herring::update::lane<four_floats>, float>);
    CHECK(std::is_same_v<herring::update::lane<two_longs>, std::int64_t>);
}

TEST_CASE("update: as_is finishes nothing") {
    CHECK(std::is_empty_v<herring::update::as_is>);
    static_assert(herring::update::as_is()(2.5f) == 2.5f);
    four_floats const made = herring::update::as_is()(four_floats{1, 2, 3, 4});
    for (int i = 0; i < 4; ++i) CHECK(made[i] == static_cast<float>(i + 1));
}
