// herring: how members' rows become one: spaces, weightings, the concept of combine policies, and its models.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_COMBINE_HPP
#define HERRING_ENSEMBLE_COMBINE_HPP

#include "herring/base/config.hpp"
#include "herring/kernel/sorted_rows.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/composed_name.hpp"
#include "herring/policy/policy.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The numbers in which rows are combined: `space::value` and the others.
///
/// In all but `value` a member's row is its logits. A logit of −inf is masked: a probability of 0. NaN and
/// +inf refuse the row, and so does a row of nothing but −inf.
namespace space {

/// Plain numbers, which must be finite: a regression, forces.
struct value {
    static constexpr char const* name = "value";
    static constexpr bool of_logits = false;
};
/// Logits as they are. A constant added to all logits of a combined row has no meaning. An element that one
/// of the rows masks is masked in the result.
struct logit {
    static constexpr char const* name = "logit";
    static constexpr bool of_logits = true;
};
/// Logits minus the logarithm of their sum of exponentials. Their mean is a geometric mean of probabilities,
/// which does not sum to 1. An element that one of the rows masks is masked in the result.
struct log_probability {
    static constexpr char const* name = "log_probability";
    static constexpr bool of_logits = true;
};
/// Exponentials of logits, divided by their sum.
struct probability {
    static constexpr char const* name = "probability";
    static constexpr bool of_logits = true;
};

} // namespace space

template <class Space>
concept row_space = std::same_as<Space, space::value> || std::same_as<Space, space::logit> ||
    std::same_as<Space, space::log_probability> || std::same_as<Space, space::probability>;

/// The use of weights: one number a member, given with a request.
namespace weighting {

/// No weights: all rows count alike.
struct none {
    static constexpr char const* name = "none";
    static constexpr bool weighted = false, normalised = true;
};
/// Weights divided by the sum of the contributors' weights. Not negative, and not all 0.
struct renormalised {
    static constexpr char const* name = "renormalised";
    static constexpr bool weighted = true, normalised = true;
};
/// Weights as given: the weight of a missing member is missing in the result. They may be negative, except
/// for probabilities.
struct as_given {
    static constexpr char const* name = "as_given";
    static constexpr bool weighted = true, normalised = false;
};

} // namespace weighting

template <class Weighting>
concept row_weighting = std::same_as<Weighting, weighting::none> ||
    std::same_as<Weighting, weighting::renormalised> || std::same_as<Weighting, weighting::as_given>;

/// The properties of a rule, as `static constexpr combine_facts facts{...};`.
struct combine_facts {
    /// True if `combine` consists of operators and `?:` alone, so that one template serves numbers and GNU
    /// vectors of them. Otherwise it is called element by element, and may be any code.
    bool takes_vectors = false;
    /// True if the rule is Σ weight · row, divided by Σ weight where weights are normalised: kernels compute
    /// that, and do not call `combine`.
    bool linear = false;
    /// True if the rule counts votes: only the index of a row's largest number travels.
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

/// A rule that combines the rows of an answer, element by element.
///
/// `combine<Lane>(rows, weights)` is called once an element, with the numbers of all rows that count, one at
/// least, in roster order and in the rule's space, and with as many weights, which sum to 1 with
/// `weighting::none` and `renormalised`. The numbers are a copy that the rule may sort. With the fact
/// `takes_vectors` a Lane may also be a GNU vector of floats, one lane an element.
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

/// True if the rule takes an element type: floating-point numbers; for logits and votes those that are
/// combined as floats.
template <class Policy, class Element>
concept combine_supports = combine_policy<Policy> && element_type<Element> &&
    (std::is_same_v<accumulator<Element>, float> ||
     (std::is_same_v<accumulator<Element>, double> && !Policy::space::of_logits && !Policy::facts.votes));

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::combine {

namespace detail {
struct mean_word {
    static constexpr char const* word = "mean";
};
struct median_word {
    static constexpr char const* word = "median";
};
struct trimmed_mean_word {
    static constexpr char const* word = "trimmed_mean";
};
// A number below 1,000 with a name.
template <unsigned Number> struct permille {
    static constexpr std::array<char, 4> digits = {
        Number >= 100 ? static_cast<char>('0' + Number / 100) : ' ',
        Number >= 10 ? static_cast<char>('0' + Number / 10 % 10) : ' ', static_cast<char>('0' + Number % 10),
        0};
    static constexpr char const* name = digits.data() + (Number >= 100 ? 0 : Number >= 10 ? 1 : 2);
};
struct vote_word {
    static constexpr char const* word = "vote";
};
} // namespace detail

/// The mean of the rows, element by element: Σ w·x / Σ w over the contributors, or Σ w·x with
/// `weighting::as_given`.
///
/// Shape:   summed in the order of the roster, in fp32 (fp64 for double).
/// Cost:    reads each row once and writes the result once.
template <row_space Space, row_weighting Weighting = herring::weighting::none> struct mean {
    using axis = axes::combine;
    using space = Space;
    using weighting = Weighting;
    static constexpr char const* name =
        herring::detail::composed_name<detail::mean_word, Space, Weighting>.data();
    static constexpr combine_facts facts{.takes_vectors = true, .linear = true};

    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const> weights) noexcept {
        Lane total = rows[0] * weights[0];
        for (std::size_t row = 1; row < rows.size(); ++row) total += rows[row] * weights[row];
        return total;
    }
};
static_assert(combine_policy<mean<herring::space::probability>>);

/// The median of the rows, element by element; of an even number of rows the mean of the middle two.
///
/// Shape:   medians of probabilities do not sum to 1, and are not normalised.
/// Cost:    up to 8 rows are sorted by networks in registers; beyond, the square of the rows.
template <row_space Space> struct median {
    using axis = axes::combine;
    using space = Space;
    using weighting = herring::weighting::none;
    static constexpr char const* name = herring::detail::composed_name<detail::median_word, Space>.data();
    static constexpr combine_facts facts{.takes_vectors = true};

    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        kernel::sort_rows(rows);
        Lane const upper = rows[rows.size() / 2];
        if (rows.size() % 2 == 1) return upper;
        Lane const lower = rows[rows.size() / 2 - 1];
        return lower * 0.5f + upper * 0.5f; // the sum could overflow
    }
};
static_assert(combine_policy<median<herring::space::value>>);

/// The mean of the rows, element by element, without the ⌊n · share⌋ least and as many greatest of the n
/// numbers.
///
/// Shape:   share in thousandths, below 500. With 200, the default, of 3 or 4 rows none is left out, of 5 to
///          9 one at each end. Such means of probabilities do not sum to 1, and are not normalised.
/// Cost:    up to 8 rows are sorted by networks in registers; beyond, the square of the rows.
template <row_space Space, unsigned PermilleAtEachEnd = 200>
requires(PermilleAtEachEnd < 500) //
    struct trimmed_mean {
    using axis = axes::combine;
    using space = Space;
    using weighting = herring::weighting::none;
    static constexpr char const* name =
        herring::detail::composed_name<detail::trimmed_mean_word, Space, detail::permille<PermilleAtEachEnd>>.data();
    static constexpr combine_facts facts{.takes_vectors = true};

    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        std::size_t const out = rows.size() * PermilleAtEachEnd / 1000;
        kernel::sort_rows(rows);
        Lane total = rows[out];
        for (std::size_t row = out + 1; row < rows.size() - out; ++row) total += rows[row];
        return total / static_cast<float>(rows.size() - 2 * out);
    }
};
static_assert(combine_policy<trimmed_mean<herring::space::value>>);

/// The vote: one a member, for the largest element of its row. Equal elements, and equal votes, go to the
/// lowest index.
///
/// Shape:   a member's row is its logits, or any numbers of which the largest is its choice. 8 bytes travel,
///          whatever the wire policy. The answer is entries: the ids that have votes, each with its share of
///          the contributors' votes (with `as_given`, its weights).
template <row_weighting Weighting = herring::weighting::none> struct vote {
    using axis = axes::combine;
    using space = herring::space::probability;
    using weighting = Weighting;
    static constexpr char const* name = herring::detail::composed_name<detail::vote_word, Weighting>.data();
    static constexpr combine_facts facts{.votes = true};
};
static_assert(combine_policy<vote<>>);

} // namespace HERRING_NAMESPACE::combine

#endif // HERRING_ENSEMBLE_COMBINE_HPP
