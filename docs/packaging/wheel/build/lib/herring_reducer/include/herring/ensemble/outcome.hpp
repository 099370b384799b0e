// herring: how a request to an ensemble ended, and why a member is not in its answer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_OUTCOME_HPP
#define HERRING_ENSEMBLE_OUTCOME_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>

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

/// Returns the name of an enumerator.
constexpr char const* to_string(outcome o) noexcept {
    constexpr char const* names[] = {"full", "partial", "failed", "busy", "cancelled", "closed"};
    static_assert(std::size(names) == outcomes);
    auto const i = static_cast<std::size_t>(o);
    return i < std::size(names) ? names[i] : "unknown";
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

/// Returns the name of an enumerator.
constexpr char const* to_string(miss m) noexcept {
    constexpr char const* names[] = {"none", "not asked", "absent",      "no credit", "probation",
                                     "late", "declined",  "refused row", "lost",      "expired"};
    static_assert(std::size(names) == misses);
    auto const i = static_cast<std::size_t>(m);
    return i < std::size(names) ? names[i] : "unknown";
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

/// Returns the name of an enumerator.
constexpr char const* to_string(decline d) noexcept {
    constexpr char const* names[] = {"unspecified", "overloaded", "expired",
                                     "bad input",   "stopping",   "bad row"};
    static_assert(std::size(names) == declines);
    auto const i = static_cast<std::size_t>(d);
    return i < std::size(names) ? names[i] : "unknown";
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

/// Returns the name of an enumerator.
constexpr char const* to_string(row_check c) noexcept {
    constexpr char const* names[] = {"good",     "wrong size", "not a number",
                                     "infinite", "no mass",    "malformed"};
    static_assert(std::size(names) == row_checks);
    auto const i = static_cast<std::size_t>(c);
    return i < std::size(names) ? names[i] : "unknown";
}

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_OUTCOME_HPP
