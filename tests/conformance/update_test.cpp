// herring: every update policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/update_suite.hpp"

#include "doctest/doctest.h"

#include "herring/update/any.hpp"
#include "herring/update/rules.hpp"

using namespace herring::conformance;
namespace update = herring::update;

namespace {
/// A rule of a user's own, with a finish, neither commutative nor associative.
struct damped {
    using axis = herring::axes::update;
    static constexpr char const* name = "damped";
    template <class T> static constexpr bool supports = std::is_floating_point_v<T>;
    static constexpr herring::update_facts facts{.takes_vectors = true, .associative = false};
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept {
        return a * update::lane<Acc>(0.5) + b;
    }
    template <class Acc> static constexpr Acc finish(Acc total, int ranks) noexcept {
        return total - static_cast<update::lane<Acc>>(ranks);
    }
};
struct squares : update::sum { // of what are sums of squares already
    static constexpr char const* name = "squares";
    template <class T>
    static constexpr bool supports = std::is_floating_point_v<T>; // squares of integers overflow
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept { return a + b * b; }
};
struct mean_of_squares : update::average {
    static constexpr char const* name = "mean_of_squares";
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true, .with_finish = true};
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x * x; }
};
struct least_magnitude : update::min { // also of integers; by scalars
    static constexpr char const* name = "least_magnitude";
    static constexpr herring::update_facts facts{.lifts = true};
    template <class Acc> static constexpr Acc lift(Acc x) noexcept {
        return x < Acc{} ? static_cast<Acc>(Acc{} - x) : x;
    }
};
struct lifts_vectors_only : update::sum {
    static constexpr char const* name = "lifts_vectors_only";
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true};
    template <class T> static constexpr bool supports = std::is_floating_point_v<T>;
    template <class Acc> static constexpr Acc lift(Acc x) noexcept {
        if constexpr (std::is_arithmetic_v<Acc>)
            return x;
        else
            return x * x;
    }
};
struct two_faced { // adds scalars, subtracts vectors
    using axis = herring::axes::update;
    static constexpr char const* name = "two_faced";
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
    static constexpr herring::update_facts facts{.takes_vectors = true};
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_arithmetic_v<Acc>)
            return a + b;
        else
            return a - b;
    }
    template <class Acc> static constexpr Acc finish(Acc total, int) noexcept { return total; }
};
struct for_nobody {
    using axis = herring::axes::update;
    static constexpr char const* name = "for_nobody";
    template <class T> static constexpr bool supports = false;
    static constexpr herring::update_facts facts{.takes_vectors = true};
    template <class Acc> static constexpr Acc combine(Acc a, Acc) noexcept { return a; }
    template <class Acc> static constexpr Acc finish(Acc total, int) noexcept { return total; }
};
} // namespace

TEST_CASE("update: average") { CHECK(text(update_suite<update::average>()) == ""); }
TEST_CASE("update: sum") { CHECK(text(update_suite<update::sum>()) == ""); }
TEST_CASE("update: min") { CHECK(text(update_suite<update::min>()) == ""); }
TEST_CASE("update: max") { CHECK(text(update_suite<update::max>()) == ""); }
TEST_CASE("update: product") { CHECK(text(update_suite<update::product>()) == ""); }
TEST_CASE("update: logical_and") { CHECK(text(update_suite<update::logical_and>()) == ""); }
TEST_CASE("update: logical_or") { CHECK(text(update_suite<update::logical_or>()) == ""); }
TEST_CASE("update: a list of rules, as its first") {
    CHECK(text(update_suite<update::any<update::average, update::max>>()) == "");
    CHECK(text(update_suite<update::any<update::sum, mean_of_squares>>()) == "");
    CHECK(text(update_suite<update::any<mean_of_squares, update::sum>>()) == "");
    CHECK(text(update_suite<update::any<least_magnitude, damped>>()) == "");
}
TEST_CASE("update: rules that lift") {
    CHECK(text(update_suite<mean_of_squares>()) == "");
    CHECK(text(update_suite<least_magnitude>()) == "");
}
TEST_CASE("update: a rule of one's own") { CHECK(text(update_suite<damped>()) == ""); }

TEST_CASE("update: what is wrong is found") {
    findings const found = update_suite<two_faced>();
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().test == "lanes");
    findings const lifted = update_suite<lifts_vectors_only>();
    REQUIRE_FALSE(lifted.empty());
    CHECK(lifted.front().test == "lanes");
    CHECK(update_suite<for_nobody>().front().test == "facts");
    findings const squared = update_suite<squares>();
    CHECK(std::any_of(squared.begin(), squared.end(),
                      [](finding const& f) { return f.test == "associative"; }));
}
