// herring: every combine policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/combine_suite.hpp"

#include "doctest/doctest.h"

#include "herring/ensemble/combine.hpp"

using namespace herring::conformance;
namespace combine = herring::combine;
namespace space = herring::space;
namespace weighting = herring::weighting;

namespace {
struct midrange { // a rule of a user's own
    using axis = herring::axes::combine;
    using space = herring::space::value;
    using weighting = herring::weighting::none;
    static constexpr char const* name = "midrange";
    static constexpr herring::combine_facts facts{.takes_vectors = true};
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        Lane least = rows[0], most = rows[0];
        for (Lane const& x : rows) {
            least = x < least ? x : least;
            most = x > most ? x : most;
        }
        return (least + most) * 0.5f;
    }
};
struct element_by_element : midrange {
    static constexpr char const* name = "element_by_element";
    static constexpr herring::combine_facts facts{};
};
struct two_faced : midrange { // numbers otherwise than vectors
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        if constexpr (std::is_arithmetic_v<Lane>)
            return rows[0];
        else
            return rows[0] * 2.0f;
    }
};
struct remembers : midrange {
    static inline float before = 0;
    static constexpr herring::combine_facts facts{};
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        Lane const result = rows[0] + before;
        before = static_cast<float>(rows[0]);
        return result;
    }
};
struct divides_by_nothing : midrange {
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return (rows[0] - rows[0]) / (rows[0] - rows[0]);
    }
};
struct unmasks : midrange {
    using space = herring::space::logit;
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0] > -1e30f ? rows[0] : Lane{} - 1e30f;
    }
};

bool finds(findings const& all, std::string const& test) {
    return std::any_of(all.begin(), all.end(), [&](finding const& f) { return f.test == test; });
}
} // namespace

TEST_CASE("combine: mean of values") {
    CHECK(text(combine_suite<combine::mean<space::value>>()) == "");
    CHECK(text(combine_suite<combine::mean<space::value, weighting::as_given>>()) == "");
}
TEST_CASE("combine: mean of probabilities") {
    CHECK(text(combine_suite<combine::mean<space::probability>>()) == "");
    CHECK(text(combine_suite<combine::mean<space::probability, weighting::renormalised>>()) == "");
}
TEST_CASE("combine: mean of logits") {
    CHECK(text(combine_suite<combine::mean<space::logit>>()) == "");
    CHECK(text(combine_suite<combine::mean<space::log_probability, weighting::renormalised>>()) == "");
}
TEST_CASE("combine: median") {
    CHECK(text(combine_suite<combine::median<space::value>>()) == "");
    CHECK(text(combine_suite<combine::median<space::log_probability>>()) == "");
}
TEST_CASE("combine: trimmed mean") {
    CHECK(text(combine_suite<combine::trimmed_mean<space::value>>()) == "");
    CHECK(text(combine_suite<combine::trimmed_mean<space::probability, 400>>()) == "");
}
TEST_CASE("combine: a rule of one's own") {
    CHECK(text(combine_suite<midrange>()) == "");
    CHECK(text(combine_suite<element_by_element>()) == "");
}

TEST_CASE("combine: what is wrong is found") {
    CHECK(finds(combine_suite<two_faced>(), "lanes"));
    CHECK(finds(combine_suite<remembers>(), "pure"));
    CHECK(finds(combine_suite<divides_by_nothing>(), "number"));
    CHECK(finds(combine_suite<unmasks>(), "masked"));
}
