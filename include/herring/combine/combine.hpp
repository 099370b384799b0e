// herring: the concept of combine policies: how the rows of an ensemble's members become one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMBINE_COMBINE_HPP
#define HERRING_COMBINE_COMBINE_HPP

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/combine/space.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/policy.hpp"

namespace HERRING_NAMESPACE {

/// What a rule promises, as `static constexpr combine_facts facts{...};`.
struct combine_facts {
    /// `combine` is made of operators and `?:` alone, so that one template serves numbers and GNU vectors of them. False: it is
    /// called element by element, and may be any code.
    bool takes_vectors = false;
    /// It is Σ weight · row, divided by Σ weight where weights are normalised: kernels do that, and do not call `combine`.
    bool linear = false;
    /// It counts what members would choose: only the index of a row's largest number travels.
    bool votes = false;
};

template <class Policy>
concept combine_named = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
/// Clause: `using space = herring::space::...`.
template <class Policy>
concept combine_names_its_space = row_space<typename Policy::space>;
/// Clause: `using weighting = herring::weighting::...`.
template <class Policy>
concept combine_names_its_weighting = row_weighting<typename Policy::weighting>;
template <class Policy>
concept combine_states_facts = states_facts<Policy, combine_facts>;

/// Clause: `combine(std::span<Lane> rows, std::span<float const> weights) noexcept → Lane`.
template <class Policy, class Lane = float>
concept combine_combines = requires(std::span<Lane> rows, std::span<float const> weights) {
    // clang-format off
    { Policy::combine(rows, weights) } noexcept -> std::same_as<Lane>;
    // clang-format on
};

namespace clauses::combine {
using floats [[gnu::vector_size(16)]] = float;
} // namespace clauses::combine

template <class Policy>
concept combine_takes_vectors =
    !Policy::facts.takes_vectors || combine_combines<Policy, clauses::combine::floats>;

/// How the rows that came in become one, element by element.
///
/// `combine<Lane>(rows, weights)` is called once an element, with the numbers of all rows that count, at least one, in the order
/// of the roster, in the rule's space, and as many weights: with `weighting::none` and `renormalised` they sum to 1. The
/// numbers are the rule's own copy: it may sort them. With the fact `takes_vectors`, a Lane is a GNU vector of floats too,
/// which is as many elements.
///
/// Masked elements are −inf in logits and log-probabilities. NaN never comes in.
template <class Policy>
concept combine_policy = std::same_as<typename Policy::axis, axes::combine> && combine_named<Policy> &&
    combine_names_its_space<Policy> && combine_names_its_weighting<Policy> && combine_states_facts<Policy> &&
    (Policy::facts.votes || (combine_combines<Policy> && combine_takes_vectors<Policy>));

template <class Policy> struct check<axes::combine, Policy> {
    static constexpr int broken = [] {
        if constexpr (!combine_states_facts<Policy>)
            return first_broken({combine_named<Policy>, combine_names_its_space<Policy>,
                                 combine_names_its_weighting<Policy>, false});
        else if constexpr (Policy::facts.votes)
            return first_broken({combine_named<Policy>, combine_names_its_space<Policy>,
                                 combine_names_its_weighting<Policy>});
        else
            return first_broken({combine_named<Policy>, combine_names_its_space<Policy>,
                                 combine_names_its_weighting<Policy>, true, combine_combines<Policy>,
                                 combine_takes_vectors<Policy>});
    }();
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-B01] combine: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(broken != 1,
                  "[HRG-B02] combine: needs 'using space = herring::space::<space>', one of value, logit, "
                  "log_probability and probability; a common slip is a space of one's own; combine values, "
                  "and have the members send what you want combined");
    static_assert(
        broken != 2,
        "[HRG-B03] combine: needs 'using weighting = herring::weighting::<weighting>', one of none, "
        "renormalised and as_given; a common slip is to leave it out; say none if all rows count alike");
    static_assert(
        broken != 3,
        "[HRG-B04] combine: needs 'static constexpr herring::combine_facts facts{...}'; a common slip "
        "is a fact of its own, such as 'static constexpr bool takes_vectors', which nothing reads; "
        "write it into facts, as in '{.takes_vectors = true}'");
    static_assert(
        broken != 4,
        "[HRG-B05] combine: needs 'template <class Lane> static Lane combine(std::span<Lane> rows, "
        "std::span<float const> weights) noexcept'; a common slip is to forget static or noexcept, or "
        "to take the rows as const; take both spans, and leave unnamed what is not used");
    static_assert(
        broken != 5,
        "[HRG-B06] combine: its facts say takes_vectors, and combine cannot be called with vectors; a "
        "common slip is an if or std::max in it; write a conditional expression, or leave takes_vectors "
        "out: it is then called element by element");
};

/// Whether the rule makes sense for an element type: floating-point numbers, and of logits those that are combined as floats.
template <class Policy, class Element>
concept combine_supports = combine_policy<Policy> && element_type<Element> &&
    (std::is_same_v<accumulator<Element>, float> ||
     (std::is_same_v<accumulator<Element>, double> && !Policy::space::of_logits && !Policy::facts.votes));

} // namespace HERRING_NAMESPACE

#endif // HERRING_COMBINE_COMBINE_HPP
