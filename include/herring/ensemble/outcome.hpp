// herring: how a request to an ensemble ended, and why a member is not in its answer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_OUTCOME_HPP
#define HERRING_ENSEMBLE_OUTCOME_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// The outcome of a request. Only `full` and `partial` have values.
enum class outcome : std::uint8_t {
    full,      ///< every member of the roster, or of `among`, is in the answer
    partial,   ///< at least k members are
    failed,    ///< fewer than k were at the deadline, or k could not be reached any more
    busy,      ///< refused: all places for requests in flight were taken
    cancelled, ///< by `cancel`
    closed     ///< the frontend was closed
};
inline constexpr int outcomes = 6;

/// Returns "full", "partial", "failed", "busy", "cancelled", "closed".
constexpr char const* to_string(outcome o) noexcept {
    switch (o) {
    case outcome::full:
        return "full";
    case outcome::partial:
        return "partial";
    case outcome::failed:
        return "failed";
    case outcome::busy:
        return "busy";
    case outcome::cancelled:
        return "cancelled";
    case outcome::closed:
        return "closed";
    }
    return "unknown";
}

/// The reason why a member is not in an answer.
enum class miss : std::uint8_t {
    none,        ///< it is in the answer
    not_asked,   ///< the request was limited to other members
    absent,      ///< not connected, or leaving
    no_credit,   ///< no credit, or answers held its rows, until the end: the request was not sent
    probation,   ///< asked but not waited for: late several times in a row before
    late,        ///< no answer when the set of contributors was frozen, before the deadline
    declined,    ///< declined the request
    refused_row, ///< its row did not pass the check, at the frontend or at the member
    lost,        ///< its connection ended before it answered
    expired      ///< no answer at the deadline
};
inline constexpr int misses = 10;

/// Returns "none", "not asked", "absent", "no credit", "probation", "late", "declined", "refused row",
/// "lost", "expired".
constexpr char const* to_string(miss m) noexcept {
    switch (m) {
    case miss::none:
        return "none";
    case miss::not_asked:
        return "not asked";
    case miss::absent:
        return "absent";
    case miss::no_credit:
        return "no credit";
    case miss::probation:
        return "probation";
    case miss::late:
        return "late";
    case miss::declined:
        return "declined";
    case miss::refused_row:
        return "refused row";
    case miss::lost:
        return "lost";
    case miss::expired:
        return "expired";
    }
    return "unknown";
}

/// The reason why a member declines a request.
enum class decline : std::uint8_t {
    unspecified, ///< the job was destroyed unsent
    overloaded,
    expired, ///< the deadline had passed before the work began
    bad_input,
    stopping,
    bad_row ///< its row would not have passed the frontend's check
};
inline constexpr int declines = 6;

/// Returns "unspecified", "overloaded", "expired", "bad input", "stopping", "bad row".
constexpr char const* to_string(decline d) noexcept {
    switch (d) {
    case decline::unspecified:
        return "unspecified";
    case decline::overloaded:
        return "overloaded";
    case decline::expired:
        return "expired";
    case decline::bad_input:
        return "bad input";
    case decline::stopping:
        return "stopping";
    case decline::bad_row:
        return "bad row";
    }
    return "unknown";
}

namespace detail::ensembles {

/// The result of the check of a row.
enum class row_check : std::uint8_t {
    good,
    wrong_size,
    not_a_number,
    infinite,  ///< +inf, or −inf where the space has none
    no_mass,   ///< its weights sum to 0
    malformed, ///< ids out of order or out of range, a head that contradicts the lanes
};
inline constexpr int row_checks = 6;

/// Returns "good", "wrong size", "not a number", "infinite", "no mass", "malformed".
constexpr char const* to_string(row_check c) noexcept {
    switch (c) {
    case row_check::good:
        return "good";
    case row_check::wrong_size:
        return "wrong size";
    case row_check::not_a_number:
        return "not a number";
    case row_check::infinite:
        return "infinite";
    case row_check::no_mass:
        return "no mass";
    case row_check::malformed:
        return "malformed";
    }
    return "unknown";
}

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_OUTCOME_HPP
