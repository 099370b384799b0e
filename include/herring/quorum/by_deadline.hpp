// herring: the quorum that waits for all until the deadline.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_QUORUM_BY_DEADLINE_HPP
#define HERRING_QUORUM_BY_DEADLINE_HPP

#include "herring/base/config.hpp"
#include "herring/quorum/quorum.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE::quorum {

/// All members that were asked are waited for until the deadline, but for those on probation; `Least` or more are an answer then.
///
/// Shape:   `Least` rows or more at the deadline are an answer, fewer are none.
/// Cost:    an answer takes as long as the slowest member, at most to the deadline; one that is stopped costs three deadlines,
///          until it is on probation. One that was lost, declined or sent a bad row is not waited for, nor is one that had no credit
///          when `Least` rows were there.
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

#endif // HERRING_QUORUM_BY_DEADLINE_HPP
