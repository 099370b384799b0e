// herring: times of the failure detector: when a silent rank counts as failed, when a root cause is named.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_FAILURE_DETECTOR_OPTIONS_HPP
#define HERRING_MODEL_FAILURE_DETECTOR_OPTIONS_HPP

#include "herring/base/config.hpp"

#include <chrono>

namespace HERRING_NAMESPACE {

namespace detail {

/// The value of an option that the program has not set.
inline constexpr std::chrono::milliseconds not_given = std::chrono::milliseconds::min();

} // namespace detail

/// Times of the failure detector. A time that is not given follows from `peer_timeout`.
///
/// The times of rank 0 hold for all ranks of a world; a rank that gives other times is refused.
/// Errors:  `bad_argument` from `join` and `launch`, naming a time that is too short or two that contradict
///          each other.
struct failure_detector_options {
    /// Instead of HERRING_PEER_TIMEOUT: the longest time without a sign of life of a rank (stopped, starved
    /// or cut off) before the world ends. Default 5 s; at least 50 ms, or `herring::never`.
    std::chrono::milliseconds peer_timeout = detail::not_given;
    /// Time between two heartbeats of a rank. Default: a tenth of `peer_timeout`, at most 500 ms. At most
    /// half of `peer_timeout`.
    std::chrono::milliseconds heartbeat = detail::not_given;
    /// Time in which a rank must answer for which rank it waits. Default: a fifth of `peer_timeout`, from 250
    /// ms to 1 s. At least 100 ms.
    std::chrono::milliseconds reply_timeout = detail::not_given;
    /// Time that a rank whose deadline has passed waits for the root cause, before it names the rank that it
    /// waits for. Default: three times `reply_timeout`. At least `reply_timeout`. Lost packets lengthen both
    /// times by up to 11/20 of `peer_timeout`, at most 2.75 s.
    std::chrono::milliseconds verdict_timeout = detail::not_given;
    /// The length of a wait from which it is checked for a deadlock. Default 1 s. At least 50 ms.
    std::chrono::milliseconds long_wait = detail::not_given;

    friend bool operator==(failure_detector_options const&, failure_detector_options const&) = default;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_FAILURE_DETECTOR_OPTIONS_HPP
