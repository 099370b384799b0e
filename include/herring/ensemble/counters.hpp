// herring: what an ensemble's frontend counts, of itself and of each member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_COUNTERS_HPP
#define HERRING_ENSEMBLE_COUNTERS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/outcome.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// What became of the requests that one member might have answered, from the frontend's start on. They only grow.
///
/// Requests in flight apart, asked = answered + missed.
struct member_counters {
    std::uint64_t asked = 0;    ///< requests that it was asked, by whichever replica
    std::uint64_t answered = 0; ///< requests whose set of contributors it is in
    std::uint64_t missed = 0;   ///< requests that it was asked and that were decided without it
    std::uint64_t late = 0;     ///< sound rows that came after the decision, or after another replica's
    std::uint64_t hedged = 0;   ///< second requests to another replica
    std::uint64_t stale =
        0; ///< messages of an earlier incarnation, or for a request that it does not owe; dropped
    std::uint64_t duplicate = 0;      ///< further answers to a request in flight; dropped
    std::uint64_t lost = 0;           ///< connections that ended
    std::uint64_t early = 0;          ///< rows that came before they were expected, and were kept
    std::uint64_t early_answered = 0; ///< of these: those that counted
    std::uint64_t early_evicted = 0;  ///< of these: dropped for a newer one, as no place was free
    std::uint64_t early_expired = 0;  ///< of these: dropped as nobody expected them in time

    std::uint64_t missing[misses] = {};    ///< requests by `miss`; that of `none` is `answered`
    std::uint64_t declined[declines] = {}; ///< answers by `decline`, late ones too
    std::uint64_t refused_rows[6] = {};    ///< rows that came, by what is wrong (`row_check`), late ones too
    static_assert(detail::ensembles::row_checks == 6);

    constexpr std::uint64_t missing_for(miss why) const noexcept {
        return missing[static_cast<std::size_t>(why)];
    }
    constexpr std::uint64_t declined_for(decline why) const noexcept {
        return declined[static_cast<std::size_t>(why)];
    }
    /// Rows that did not pass the check, at the frontend or at the member.
    constexpr std::uint64_t refused() const noexcept {
        std::uint64_t all = declined_for(decline::bad_row);
        for (std::uint64_t const n : refused_rows) all += n;
        return all;
    }

    friend constexpr bool operator==(member_counters const&, member_counters const&) = default;
};

/// What became of a frontend's requests, and of those who came to be members, from its start on. They only grow.
struct frontend_counters {
    std::uint64_t ended[outcomes] =
        {};                   ///< requests by outcome; `busy` and `closed` also without having begun
    std::uint64_t hedges = 0; ///< second requests to another replica
    std::uint64_t hedges_withheld =
        0;                       ///< those that were due, with another replica at hand, and beyond the budget
    std::uint64_t late_rows = 0; ///< as the members' `late`, together
    std::uint64_t refused[admission_refusals] = {}; ///< processes that were not taken as a member, by reason

    constexpr std::uint64_t refused_for(admission_refusal why) const noexcept {
        return refused[static_cast<std::size_t>(why)];
    }
    constexpr std::uint64_t ended_as(outcome how) const noexcept {
        return ended[static_cast<std::size_t>(how)];
    }

    friend constexpr bool operator==(frontend_counters const&, frontend_counters const&) = default;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_COUNTERS_HPP
