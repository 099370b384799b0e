// herring: sync policies, which decide what a step exchanges, bucket by bucket: the concept, and the default.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_SYNC_HPP
#define HERRING_SYNC_SYNC_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE::sync {

/// One bit a bucket: the buckets that a rank votes to exchange, or that any rank voted for. 64 bytes; bucket
/// b has bit b mod 512.
struct ballot {
    static constexpr std::size_t bits = 512;
    std::uint64_t words[bits / 64] = {};

    static constexpr ballot all() noexcept {
        ballot result;
        for (std::uint64_t& word : result.words) word = ~std::uint64_t{0};
        return result;
    }
    constexpr void set(std::size_t bucket) noexcept {
        words[bucket % bits / 64] |= std::uint64_t{1} << bucket % 64;
    }
    constexpr bool has(std::size_t bucket) const noexcept {
        return (words[bucket % bits / 64] >> bucket % 64 & 1) != 0;
    }
    constexpr bool any() const noexcept {
        std::uint64_t all = 0;
        for (std::uint64_t const word : words) all |= word;
        return all != 0;
    }
    friend constexpr bool operator==(ballot const&, ballot const&) = default;
};
static_assert(sizeof(ballot) == 64);

} // namespace HERRING_NAMESPACE::sync

namespace HERRING_NAMESPACE {

/// The facts of a sync policy: `static constexpr sync_facts facts{...};`.
struct sync_facts {
    /// `observe` is called with the statistics of each bucket's gradient: one pass over it, in `ready`.
    bool observes = false;
    /// Ranks vote in each step: one message of 64 bytes a peer. With `ahead == 0` the step itself waits for
    /// the votes, else the next step does.
    bool votes = false;
    /// 1: the votes of earlier steps decide what a step exchanges, when it begins. 0: the step's own votes
    /// count too.
    int ahead = 1;
    /// An exchange sets the weights to the result of a step of the optimizer `outer` from the anchor, the
    /// weights after the last exchange, with the gradient anchor − mean; not to the mean itself.
    bool outer = false;
    /// Buckets that a step does not exchange between nodes are averaged over the ranks of each node.
    bool on_nodes = false;
};

namespace sync {
struct every_step;
} // namespace sync

template <class Policy>
concept sync_states_facts = states_facts<Policy, sync_facts> &&
                            (Policy::facts.ahead == 0 || Policy::facts.ahead == 1) &&
                            !(Policy::facts.outer && Policy::facts.on_nodes) && !requires {
    Policy::observes;
}
&&!requires { Policy::votes; }
&&!requires { Policy::ahead; };
template <class Policy>
concept sync_names_outer = requires {
    typename Policy::outer;
};
template <class Policy>
concept sync_is_plain =
    std::is_trivially_copyable_v<Policy> && std::is_nothrow_default_constructible_v<Policy>;
template <class Policy>
concept sync_says_what_is_due = requires(Policy const& policy, std::size_t bucket) {
    { policy.due(bucket) }
    noexcept->std::same_as<bool>;
};
template <class Policy>
concept sync_takes_what_was_agreed = requires(Policy& policy, sync::ballot const& any) {
    { policy.agreed(any) }
    noexcept;
};
template <class Policy>
concept sync_observes = requires(Policy& policy, std::size_t bucket, double squares) {
    { policy.observe(bucket, squares) }
    noexcept;
};
template <class Policy>
concept sync_votes = requires(Policy& policy) {
    { policy.vote() }
    noexcept->std::same_as<sync::ballot>;
};

/// A sync policy decides which buckets a step exchanges. An object of the policy is part of each rank's
/// reducer and holds the policy's state; checkpoints save and load it as bytes.
///
/// - `due(bucket)`: true if the step exchanges this bucket. The answer must depend on what all ranks share
///   alone: the number of `agreed` calls and their ballots, never on what `observe` saw.
/// - `agreed(any)`: called once a step on all ranks, before the next `due`, `observe` and `vote`, with the
///   buckets that any rank voted for in that step; empty where ranks do not vote.
/// - `observe(bucket, squares)`, with `facts.observes`: called once a step and bucket, in the order of
///   buckets, with Σx² of this rank's gradient.
/// - `vote()`, with `facts.votes`: called once a step, after all buckets were observed. Returns the buckets
///   that this rank wants to exchange.
/// - `outer`, with `facts.outer`: an optimizer.
///
/// Buckets are those of the fusion policy; the parts of a split bucket are exchanged together.
///
/// `sync::every_step`, the default, has none of these members: each step reduces gradients.
template <class Policy>
concept sync_policy = std::same_as<typename Policy::axis, axes::sync> &&
    (std::same_as<Policy, sync::every_step> ||
     (sync_states_facts<Policy> && sync_is_plain<Policy> && sync_says_what_is_due<Policy> &&
      sync_takes_what_was_agreed<Policy> && sync_observes<Policy> == Policy::facts.observes &&
      sync_votes<Policy> == Policy::facts.votes && sync_names_outer<Policy> == Policy::facts.outer));

template <class Policy> struct check<axes::sync, Policy> {
    static constexpr int broken = [] {
        if constexpr (std::is_same_v<Policy, sync::every_step>)
            return -1;
        else if constexpr (!sync_states_facts<Policy>)
            return 0;
        else
            return first_broken(
                {true, sync_is_plain<Policy>, sync_says_what_is_due<Policy>,
                 sync_takes_what_was_agreed<Policy>, sync_observes<Policy> == Policy::facts.observes,
                 sync_votes<Policy> == Policy::facts.votes, sync_names_outer<Policy> == Policy::facts.outer});
    }();
    static constexpr bool value = broken < 0;
    static_assert(
        broken != 0,
        "[HRG-Y01] sync: needs 'static constexpr herring::sync_facts facts{...}', with ahead 0 or 1, and "
        "not both outer and on_nodes; "
        "a common slip is a constant 'votes' of its own, which nothing reads; write it into "
        "facts, as in '{.votes = true}'");
    static_assert(
        broken != 1,
        "[HRG-Y02] sync: an object of the policy is its state, which is saved as bytes, so it has to "
        "be trivially copyable, and constructed without arguments; a common slip is a std::vector, "
        "one entry a bucket; take an array of sync::ballot::bits entries");
    static_assert(broken != 2,
                  "[HRG-Y03] sync: needs 'bool due(std::size_t bucket) const noexcept'; a common slip is to "
                  "forget const or noexcept; add both");
    static_assert(
        broken != 3,
        "[HRG-Y04] sync: needs 'void agreed(herring::sync::ballot const& any) noexcept', which ends a "
        "step; a common slip is to forget noexcept, or to leave it out where ranks do not vote; "
        "count steps in it");
    static_assert(
        broken != 4,
        "[HRG-Y05] sync: 'void observe(std::size_t bucket, double squares) noexcept' and facts.observes "
        "go together; a common slip is to write one and forget the other; have both, or none");
    static_assert(
        broken != 5,
        "[HRG-Y06] sync: 'herring::sync::ballot vote() noexcept' and facts.votes go together; a common "
        "slip is to write one and forget the other, or to return bool; have both, or none");
    static_assert(
        broken != 6,
        "[HRG-Y09] sync: 'using outer = <an optimizer>;' and facts.outer go together; a common slip is "
        "to write one and forget the other; have both, or none");
};

namespace detail {
/// True if there are steps that exchange nothing, so that each replica has its own weights.
template <class Policy> inline constexpr bool skips_steps = !std::is_same_v<Policy, sync::every_step>;

template <class Policy> constexpr bool ranks_vote() noexcept {
    if constexpr (skips_steps<Policy>)
        return Policy::facts.votes;
    else
        return false;
}
} // namespace detail

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::sync {

/// Each step reduces gradients, so that replicas stay equal. The default.
struct every_step {
    using axis = axes::sync;
    static constexpr char const* name = "every_step";
};
static_assert(sync_policy<every_step>);

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_SYNC_HPP
