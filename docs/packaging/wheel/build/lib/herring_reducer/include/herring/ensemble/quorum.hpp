// herring: how many members make an answer, and how long others are waited for: quorum policies and tunings.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_QUORUM_HPP
#define HERRING_ENSEMBLE_QUORUM_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The time for which an answer waits for members beyond the k-th, and the members that it does not wait for.
struct quorum_tuning {
    /// The value of `grace_percent` that waits until the deadline.
    static constexpr std::uint32_t to_the_deadline = 0xffff'ffff;

    std::uint32_t grace_percent = 15;  ///< of t_k, the time from the request's entry to its k-th row
    std::uint32_t least_grace_us = 50; ///< a thread that sleeps wakes in some 75 µs
    std::uint32_t probation_after = 3; ///< late requests in a row until probation begins; 0: no probation
    std::uint32_t probation_left_after = 3; ///< requests in time, in a row, until it ends; at least 1
    /// Where the grace is shorter: time after the k-th row until which a member is in time for probation. A
    /// thread may wait so long for a core.
    std::uint32_t late_after_us = 1000;

    /// Returns the grace after the k-th row, in nanoseconds: max(grace_percent of t_k, least_grace_us).
    constexpr std::int64_t grace_ns(std::int64_t t_k_ns) const noexcept {
        constexpr std::int64_t most = std::int64_t{1} << 61; // 73 years; the sum of two does not overflow
        if (grace_percent == to_the_deadline) return most;
        std::int64_t const hundredth = t_k_ns > 0 ? t_k_ns / 100 : 0, percent = grace_percent;
        if (percent > 0 && hundredth >= most / percent) return most;
        std::int64_t const share = hundredth * percent + (t_k_ns > 0 ? t_k_ns % 100 * percent / 100 : 0);
        std::int64_t const least = std::int64_t{least_grace_us} * 1000;
        return share < least ? least : share;
    }

    /// Returns until when a row is in time for probation, in nanoseconds after the k-th row: max(grace,
    /// late_after_us).
    constexpr std::int64_t late_ns(std::int64_t t_k_ns) const noexcept {
        std::int64_t const grace = grace_ns(t_k_ns), least = std::int64_t{late_after_us} * 1000;
        return grace < least ? least : grace;
    }

    friend constexpr bool operator==(quorum_tuning const&, quorum_tuning const&) = default;
};

/// Returns "grace_percent=15 least_grace_us=50 probation_after=3 probation_left_after=3 late_after_us=1000";
/// for `to_the_deadline` its name in place of the number.
HERRING_SETUP inline std::string to_string(quorum_tuning const& tuning) {
    return "grace_percent=" +
           (tuning.grace_percent == quorum_tuning::to_the_deadline ? std::string("to_the_deadline")
                                                                   : std::to_string(tuning.grace_percent)) +
           " least_grace_us=" + std::to_string(tuning.least_grace_us) +
           " probation_after=" + std::to_string(tuning.probation_after) +
           " probation_left_after=" + std::to_string(tuning.probation_left_after) +
           " late_after_us=" + std::to_string(tuning.late_after_us);
}

/// Hedged requests: a member with replicas that has not answered after a while is asked again, at another
/// replica.
struct hedging_tuning {
    std::uint32_t percent = 5;    ///< at most so many hedges for 100 requests; 0: none
    std::uint32_t floor_us = 200; ///< earliest time of a hedge
    std::uint32_t samples = 100;  ///< latencies of the member that must be known
    std::uint32_t burst = 32;     ///< hedges that may be saved up in quiet times

    friend constexpr bool operator==(hedging_tuning const&, hedging_tuning const&) = default;
};

/// Returns "percent=5 floor_us=200 samples=100 burst=32".
HERRING_SETUP inline std::string to_string(hedging_tuning const& tuning) {
    return "percent=" + std::to_string(tuning.percent) + " floor_us=" + std::to_string(tuning.floor_us) +
           " samples=" + std::to_string(tuning.samples) + " burst=" + std::to_string(tuning.burst);
}

template <class Policy>
concept quorum_counts = requires(std::size_t roster) {
    { Policy::least(roster) }
    noexcept->std::same_as<std::size_t>;
};

template <class Policy>
concept quorum_tuned = requires {
    requires std::is_same_v<decltype(Policy::tuning), quorum_tuning const>;
    requires std::bool_constant < detail::readable<quorum_tuning>(Policy::tuning)
    > ::value;
};

template <class Policy>
concept quorum_not_zero = requires {
    requires std::bool_constant<(Policy::least(1) >= 1)>::value;
};

/// A rule for k, the number of members that make an answer: the default of a frontend, which a request may
/// override.
///
/// `least(roster)` is called with the size of the roster when a frontend is constructed and when a member is
/// added. It has neither clock nor state. `tuning` says how long members beyond the k-th are waited for.
///
/// Errors: `bad_argument` from the frontend's constructor if k exceeds its roster.
template <class Policy>
concept quorum_policy = std::same_as<typename Policy::axis, axes::quorum> && quorum_counts<Policy> &&
    quorum_tuned<Policy> && quorum_not_zero<Policy>;

template <class Policy> struct check<axes::quorum, Policy> {
    static constexpr int broken =
        first_broken({quorum_counts<Policy>, quorum_tuned<Policy>, quorum_not_zero<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(
        broken != 0,
        "[HRG-Q01] quorum: needs 'static constexpr std::size_t least(std::size_t roster) noexcept'; a "
        "common slip is to forget static or noexcept; return how many members make an answer");
    static_assert(
        broken != 1,
        "[HRG-Q02] quorum: needs 'static constexpr herring::quorum_tuning tuning{...}'; a common slip "
        "is to leave it out where the defaults hold; write 'tuning{}'");
    static_assert(
        broken != 2,
        "[HRG-Q03] quorum: 'least(1)' must be a constant of 1 or more; a common slip is at_least<0>, an "
        "answer of nobody; ask for at least one member, and make the function constexpr");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::quorum {

/// Answers with `Least` members; waits for more as long as `Tuning` says.
///
/// Shape:   `Least` rows or more at the deadline are an answer, fewer are none.
/// Cost:    at most max(grace_percent of t_k, least_grace_us) after the last of these rows; nothing once all
///          rows that are waited for have come.
/// Example: `herring::quorum::at_least<3, herring::quorum_tuning{.grace_percent = 50}>`
template <std::size_t Least, quorum_tuning Tuning = quorum_tuning{}> struct at_least {
    using axis = axes::quorum;
    static constexpr quorum_tuning tuning = Tuning;

    static constexpr std::size_t least(std::size_t /*roster*/) noexcept { return Least; }
};

static_assert(quorum_policy<at_least<1>>);
static_assert(std::is_empty_v<at_least<1>>);

/// Waits until the deadline for all members that were asked, except those on probation.
///
/// Shape:   `Least` rows or more at the deadline are an answer, fewer are none.
/// Cost:    an answer takes as long as the slowest member, at most to the deadline. A stopped member costs
///          three deadlines, until it is on probation. A member that was lost, declined or sent a bad row is
///          not waited for, nor is one that had no credit when `Least` rows were there.
/// `Tuning`: only its probation counts.
/// Example: `herring::quorum::by_deadline<2>`
template <std::size_t Least = 1, quorum_tuning Tuning = quorum_tuning{}> struct by_deadline {
    using axis = axes::quorum;
    static constexpr quorum_tuning tuning{.grace_percent = quorum_tuning::to_the_deadline,
                                          .probation_after = Tuning.probation_after,
                                          .probation_left_after = Tuning.probation_left_after,
                                          .late_after_us = Tuning.late_after_us};

    static constexpr std::size_t least(std::size_t /*roster*/) noexcept { return Least; }
};

static_assert(quorum_policy<by_deadline<>>);
static_assert(std::is_empty_v<by_deadline<>>);

} // namespace HERRING_NAMESPACE::quorum

#endif // HERRING_ENSEMBLE_QUORUM_HPP
