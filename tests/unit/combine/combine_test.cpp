// herring: tests of ensemble/combine.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

#include <span>

#include "doctest/doctest.h"

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
