// herring: the combine policy `vote`: how many members would choose which element.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMBINE_VOTE_HPP
#define HERRING_COMBINE_VOTE_HPP

#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::combine {

namespace detail {
struct vote_word {
    static constexpr char const* word = "vote";
};
} // namespace detail

/// Each member has one vote, for the largest element of its row; equal elements go to the lowest index, and so do equal votes.
///
/// Shape:   a member's row is its logits, or any numbers of which the largest is its choice. 8 bytes travel, whatever the wire
///          policy. The answer is entries: the ids that have votes, and each one's share of the votes of those who answered
///          (with `as_given`, its weights).
template <row_weighting Weighting = herring::weighting::none> struct vote {
    using axis = axes::combine;
    using space = herring::space::probability;
    using weighting = Weighting;
    static constexpr char const* name = herring::detail::composed_name<detail::vote_word, Weighting>.data();
    static constexpr combine_facts facts{.votes = true};
};
static_assert(combine_policy<vote<>>);

} // namespace HERRING_NAMESPACE::combine

#endif // HERRING_COMBINE_VOTE_HPP
