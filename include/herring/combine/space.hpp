// herring: the numbers in which the rows of an ensemble are combined, and how they are weighted.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMBINE_SPACE_HPP
#define HERRING_COMBINE_SPACE_HPP

#include <concepts>
#include <cstddef>
#include <span>

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE {

/// What a member's row is, and in which numbers rows are combined. A name of no members: `space::value` and the like.
///
/// In all but `value` a member's row is its logits. A logit of −inf is masked: a probability of 0. NaN and +inf refuse the
/// row, and so does a row of nothing but −inf.
namespace space {

/// Numbers as they are, which have to be finite: a regression, forces.
struct value {
    static constexpr char const* name = "value";
    static constexpr bool of_logits = false;
};
/// Logits as they are: what a combined row adds to all of its logits has no meaning. An element that one of the rows masks is
/// masked in the result.
struct logit {
    static constexpr char const* name = "logit";
    static constexpr bool of_logits = true;
};
/// Logits minus the logarithm of their sum of exponentials. A mean of these is a geometric mean of probabilities, which does
/// not sum to 1. An element that one of the rows masks is masked in the result.
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

/// What weights do. They are one number a member, given with a request.
namespace weighting {

/// There are none: all rows count alike.
struct none {
    static constexpr char const* name = "none";
    static constexpr bool weighted = false, normalised = true;
};
/// Divided by the sum of the weights of those who answered. Not negative, and not all 0.
struct renormalised {
    static constexpr char const* name = "renormalised";
    static constexpr bool weighted = true, normalised = true;
};
/// Taken as they are, whoever answered: the weight of who is missing is missing. Negative weights are taken, but for
/// probabilities.
struct as_given {
    static constexpr char const* name = "as_given";
    static constexpr bool weighted = true, normalised = false;
};

} // namespace weighting

template <class Weighting>
concept row_weighting = std::same_as<Weighting, weighting::none> ||
    std::same_as<Weighting, weighting::renormalised> || std::same_as<Weighting, weighting::as_given>;

} // namespace HERRING_NAMESPACE

#endif // HERRING_COMBINE_SPACE_HPP
