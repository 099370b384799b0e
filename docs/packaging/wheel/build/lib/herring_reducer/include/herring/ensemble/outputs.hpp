// herring: the outputs of an ensemble beside the combined row, and the outputs policy, a list of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_OUTPUTS_HPP
#define HERRING_ENSEMBLE_OUTPUTS_HPP

#include "herring/base/config.hpp"
#include "herring/policy/composed_name.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The outputs, each a type. `result<Number>` is what an answer holds: a span of one number an element, or a
/// number.
///
/// They are computed from the rows that count, in the space of the combine rule, with equal weights or those
/// of `weighting::renormalised`.
namespace outputs {

/// The population variance of each element: the mean of the squared distances of the rows from their mean. 0
/// where a row masks the element.
///
/// Cost: each row is read twice from the first-level cache, and one number an element is written.
struct variance {
    static constexpr char const* name = "variance";
    template <class Number> using result = std::span<Number>;
};
/// The largest standard deviation of an element: the root of the largest variance.
struct maximal_deviation {
    static constexpr char const* name = "maximal_deviation";
    template <class Number> using result = Number;
};
/// The share of the rows whose largest element differs from that of the combined row; ties go to the lowest
/// index.
struct disagreement {
    static constexpr char const* name = "disagreement";
    template <class Number> using result = float;
};
/// The entropy, in nats, of the combined probabilities. For `combine::mean<space::probability>` only.
struct entropy_of_mean {
    static constexpr char const* name = "entropy_of_mean";
    template <class Number> using result = float;
};
/// The mean of the entropies, in nats, of the members' rows before encoding. Not for `space::value`.
struct mean_entropy {
    static constexpr char const* name = "mean_entropy";
    template <class Number> using result = float;
};
/// The disagreement of members beyond the uncertainty of each: entropy_of_mean − mean_entropy, not below 0.
struct mutual_information {
    static constexpr char const* name = "mutual_information";
    template <class Number> using result = float;
};

} // namespace outputs

template <class Output>
concept output_kind =
    std::same_as<Output, outputs::variance> || std::same_as<Output, outputs::maximal_deviation> ||
    std::same_as<Output, outputs::disagreement> || std::same_as<Output, outputs::entropy_of_mean> ||
    std::same_as<Output, outputs::mean_entropy> || std::same_as<Output, outputs::mutual_information>;

template <class Policy>
concept outputs_named = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
/// Clause: it is `outputs::of<...>`.
template <class Policy>
concept outputs_is_a_list = requires {
    requires bool(Policy::is_list);
};
template <class Policy>
concept outputs_known = requires {
    requires bool(Policy::all_known);
};
template <class Policy>
concept outputs_once = requires {
    requires bool(Policy::all_once);
};

/// A list of outputs. Outputs that are not listed are neither computed nor stored.
template <class Policy>
concept outputs_policy = std::same_as<typename Policy::axis, axes::outputs> && outputs_named<Policy> &&
    outputs_is_a_list<Policy> && outputs_known<Policy> && outputs_once<Policy>;

template <class Policy> struct check<axes::outputs, Policy> {
    static constexpr int broken = first_broken(
        {outputs_named<Policy> && outputs_is_a_list<Policy>, outputs_known<Policy>, outputs_once<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(
        broken != 0,
        "[HRG-O01] outputs: this type is no list of outputs; a common slip is an output of one's own; "
        "name herring::outputs::of<...>, and compute what else you need from member_rows()");
    static_assert(
        broken != 1,
        "[HRG-O02] outputs: one of the listed types is no output; a common slip is a combine rule; "
        "list some of herring::outputs::variance, maximal_deviation, disagreement, entropy_of_mean, "
        "mean_entropy and mutual_information");
    static_assert(broken != 2,
                  "[HRG-O03] outputs: one of them is listed twice; a common slip is to join two lists; "
                  "keep one of the two");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::outputs {

namespace detail {
struct of_word {
    static constexpr char const* word = "of";
};
template <class Output, class... All> constexpr int times() noexcept {
    return (0 + ... + int(std::is_same_v<Output, All>));
}
template <class... Output> constexpr char const* name_of_list() noexcept {
    if constexpr ((output_kind<Output> && ...))
        return herring::detail::composed_name<of_word, Output...>.data();
    else
        return "of";
}
template <class Output, class Number> struct stored { typename Output::template result<Number> value{}; };
template <class Number, class... Output> struct stored_results : stored<Output, Number>... {
    /// Returns a span or a number: `get<outputs::variance>()`.
    template <class Asked> auto& get() noexcept { return static_cast<stored<Asked, Number>&>(*this).value; }
    template <class Asked> auto const& get() const noexcept {
        return static_cast<stored<Asked, Number> const&>(*this).value;
    }
};
} // namespace detail

/// The outputs of this list, in any order; `of<>`, the default, has none.
///
/// Example: `herring::ensemble<float, ..., herring::outputs::of<herring::outputs::variance>>`, then
///          `answer.get<herring::outputs::variance>()`.
template <class... Output> struct of {
    using axis = axes::outputs;
    static constexpr char const* name = detail::name_of_list<Output...>();
    static constexpr bool is_list = true;
    static constexpr bool all_known = (output_kind<Output> && ...);
    static constexpr bool all_once = ((detail::times<Output, Output...>() == 1) && ...);

    template <class Asked> static constexpr bool has = (std::is_same_v<Asked, Output> || ...);

    /// The stored results of all listed outputs.
    template <class Number> using results = detail::stored_results<Number, Output...>;
};

static_assert(outputs_policy<of<>> && outputs_policy<of<variance, mutual_information>>);

} // namespace HERRING_NAMESPACE::outputs

#endif // HERRING_ENSEMBLE_OUTPUTS_HPP
