// herring: how a request to an ensemble ended, and why a member is not in its answer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_OUTCOME_HPP
#define HERRING_ENSEMBLE_OUTCOME_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// How a request ended. Only `full` and `partial` have values.
enum class outcome : std::uint8_t {
    full,      ///< every member of the roster, or of those it was limited to, is in the answer
    partial,   ///< at least k are
    failed,    ///< fewer than k were at the deadline, or k could not be reached any more
    busy,      ///< refused: all places for requests in flight were taken
    cancelled, ///< by `cancel`
    closed     ///< the frontend was closed
};
inline constexpr int outcomes = 6;

/// "full", "partial", "failed", "busy", "cancelled", "closed".
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

/// Why a member is not in an answer.
enum class miss : std::uint8_t {
    none,        ///< it is in the answer
    not_asked,   ///< the request was limited to others
    absent,      ///< it was not connected, or was leaving
    no_credit,   ///< it had no credit, or answers held its rows, until the end: it was not sent the request
    probation,   ///< it was asked and not waited for: it had been late several times in a row
    late,        ///< it had not answered when the set of contributors was frozen, before the deadline
    declined,    ///< it answered that it does not
    refused_row, ///< its row did not pass the check, at the frontend or at the member
    lost,        ///< its connection ended before it answered
    expired      ///< it had not answered at the deadline
};
inline constexpr int misses = 10;

/// "none", "not asked", "absent", "no credit", "probation", "late", "declined", "refused row", "lost", "expired".
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

/// Why a member does not answer a request.
enum class decline : std::uint8_t {
    unspecified, ///< the job was destroyed unsent
    overloaded,
    expired, ///< the deadline had passed before the work began
    bad_input,
    stopping,
    bad_row ///< its row would not have passed the frontend's check: it was not sent
};
inline constexpr int declines = 6;

/// "unspecified", "overloaded", "expired", "bad input", "stopping", "bad row".
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

/// What the check of a row that came in found.
enum class row_check : std::uint8_t {
    good,
    wrong_size,
    not_a_number,
    infinite,  ///< +inf, or −inf where the space has none
    no_mass,   ///< its weights sum to 0
    malformed, ///< ids out of order or out of range, facts that contradict the lanes
};
inline constexpr int row_checks = 6;

/// "good", "wrong size", "not a number", "infinite", "no mass", "malformed".
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
