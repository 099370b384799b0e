// herring: the format of an ensemble's rows: encoded by members; checked, folded and decoded by the frontend.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ROW_FORMAT_HPP
#define HERRING_ENSEMBLE_ROW_FORMAT_HPP

#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/dense_rows.hpp"
#include "herring/ensemble/entry_rows.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/policy/check.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

/// Checks that rule, codec and outputs fit each other and the element type; prints one sentence for the first
/// that does not. Requires that all of them are policies, and the element one of Herring's.
template <class Element, class Combine, class Wire, class Outputs> struct rows_fit {
    using space = typename Combine::space;
    using weighting = typename Combine::weighting;
    static constexpr bool votes = Combine::facts.votes;
    static constexpr bool entries = votes || Wire::facts.entries;
    static constexpr bool mean_of_probabilities =
        Combine::facts.linear && std::is_same_v<space, herring::space::probability>;
    template <class Output> static constexpr bool asked = Outputs::template has<Output>;

    static constexpr int broken = first_broken(
        {combine_supports<Combine, Element>, wire_supports<Wire, Element>,
         !Wire::facts.entries || votes || mean_of_probabilities,
         !entries || !(asked<outputs::variance> || asked<outputs::maximal_deviation> ||
                       asked<outputs::entropy_of_mean> || asked<outputs::mean_entropy> ||
                       asked<outputs::mutual_information>),
         !(asked<outputs::entropy_of_mean> || asked<outputs::mutual_information>) || mean_of_probabilities,
         !asked<outputs::mean_entropy> || space::of_logits,
         weighting::normalised || !(asked<outputs::entropy_of_mean> || asked<outputs::mean_entropy> ||
                                    asked<outputs::mutual_information>)});
    static constexpr bool value = broken < 0;
    static_assert(
        broken != 0,
        "[HRG-B10] combine: this rule does not take the element type; a common slip is double or an "
        "integer where rows are logits, which are combined as floats; name float, herring::bfloat16 or "
        "herring::float16, or for doubles a rule over herring::space::value");
    static_assert(broken != 1,
                  "[HRG-W10] wire: this codec does not take the element type; a common slip is bf16 or fp16 "
                  "with rows of double; name herring::wire::as_is, or rows of float");
    static_assert(
        broken != 2,
        "[HRG-W11] wire: with this codec a few entries of a row travel, and this rule needs all of its "
        "elements; a common slip is top_k with a median or with a mean of logits; name "
        "herring::combine::mean<herring::space::probability> or herring::combine::vote");
    static_assert(
        broken != 3,
        "[HRG-O10] outputs: one of them needs all elements of a row, of which a few entries travel; a "
        "common slip is the variance of votes or with top_k; name herring::wire::bf16, or "
        "herring::outputs::disagreement alone");
    static_assert(broken != 4,
                  "[HRG-O11] outputs: the entropy of the mean and the mutual information are of a mean of "
                  "probabilities; a common slip is a mean of logits or a median; name "
                  "herring::combine::mean<herring::space::probability>");
    static_assert(broken != 5,
                  "[HRG-O12] outputs: the rows of this rule are plain values, which have no entropy; a "
                  "common slip is space::value with rows of logits; name another space");
    static_assert(
        broken != 6,
        "[HRG-O13] outputs: entropies need weights that sum to 1; a common slip is weighting::as_given; "
        "name herring::weighting::renormalised");
};

template <class Element, class Combine, class Wire, class Outputs>
using rows_of = std::conditional_t<Combine::facts.votes || Wire::facts.entries,
                                   std::type_identity<entry_rows<Element, Combine, Wire, Outputs>>,
                                   std::type_identity<dense_rows<Element, Combine, Wire, Outputs>>>;

/// The format of a pack's rows. Pure: its bits are a function of the rows, their order and their weights.
///
/// row_bytes(elements)                    Returns the bytes of an encoded row, whatever its numbers.
/// encode(row, out)                       Encodes a member's row; out has row_bytes. Unless the result is
///                                        `good`, the row is refused and out means nothing.
/// check(row, elements)                   Checks a row that came in: afterwards `fold` and `decode` read
///                                        within it and meet no NaN.
/// decode(row, elements, out)             Decodes a checked row for member_rows(). Dense: its numbers in the
///                                        space of the combine rule; else at most row_entries(elements)
///                                        entries, and returns how many.
/// result_bytes(elements, members)        Returns the bytes of results and scratch of one request.
/// results_in(memory, elements, members)  Places them in memory that is 64-byte aligned.
/// fold(rows, weights, elements, results) Folds checked rows in roster order, 1 to `members`, at any
///                                        alignment; as many weights, or none: all 1. False, with nothing
///                                        written, if all weights are 0.
/// is_sound(results)                      True if good rows can have these results; a sum too large for a
///                                        float is not sound, though the rows may be. For rows that may have
///                                        changed since their check.
///
/// Cost:    `fold` reads each row once. No function allocates.
/// Blocks:  never.
/// Threads: any number, each with results of its own.
template <class Element, class Combine, class Wire, class Outputs>
struct row_format : rows_of<Element, Combine, Wire, Outputs>::type {
    /// True if `results` has `values`, one an element; else it has `entries`.
    static constexpr bool dense = !Combine::facts.votes && !Wire::facts.entries;

    /// Returns the fault of weights that were given with a request, for an error's text; nullptr: none.
    HERRING_SETUP static char const* fault_of_weights(std::span<float const> weights) noexcept {
        using weighting = typename Combine::weighting;
        if (weights.empty()) return nullptr;
        if (!weighting::weighted) return "the combine rule takes no weights: its weighting is none";
        bool any = false;
        float total = 0;
        for (float const weight : weights) {
            if (!std::isfinite(weight)) return "a weight is not a finite number";
            if (weight < 0 && weighting::normalised)
                return "a weight is negative, and they are renormalised over those who answer";
            if (weight < 0 && std::is_same_v<typename Combine::space, space::probability>)
                return "a weight is negative, and probabilities are combined";
            any |= weight != 0;
            total += weight;
        }
        if (weighting::normalised && !std::isfinite(total))
            return "the sum of the weights is too large, and they are divided by it";
        return any ? nullptr : "all weights are 0";
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ROW_FORMAT_HPP
