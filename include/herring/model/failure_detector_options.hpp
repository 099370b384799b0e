// herring: the times of the failure detector: when a silent rank is given up, and how soon a root cause is named.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_FAILURE_DETECTOR_OPTIONS_HPP
#define HERRING_MODEL_FAILURE_DETECTOR_OPTIONS_HPP

#include "herring/base/config.hpp"

#include <chrono>

namespace HERRING_NAMESPACE {

namespace detail {

/// An option that the program has left alone.
inline constexpr std::chrono::milliseconds not_given = std::chrono::milliseconds::min();

} // namespace detail

/// Times of the failure detector. Those that are not given follow from `peer_timeout`.
///
/// Rank 0's hold for all ranks of a world: a rank that gives other ones is refused.
/// Errors:  `bad_argument` from `join` and `launch` naming a time that is too short, or two that contradict each other.
struct failure_detector_options {
    /// Instead of HERRING_PEER_TIMEOUT: for how long a rank may give no sign of life, because it is stopped, starved or cut
    /// off, before that ends the world; 5 s where neither is set; at least 50 ms; `herring::never`.
    std::chrono::milliseconds peer_timeout = detail::not_given;
    /// Between two signs of life of a rank: a tenth of `peer_timeout`, at most 500 ms. At most half of `peer_timeout`.
    std::chrono::milliseconds heartbeat = detail::not_given;
    /// For how long a rank may be silent that is asked whom it waits for: a fifth of `peer_timeout`, from 250 ms to 1 s. At
    /// least 100 ms.
    std::chrono::milliseconds reply_timeout = detail::not_given;
    /// How long a rank whose deadline has passed waits for the root cause, before it names the rank that it waits for: three
    /// times `reply_timeout`. No less than `reply_timeout`. Where packets are lost it lasts longer, and so does `reply_timeout`: by
    /// up to 11/20 of `peer_timeout`, at most 2.75 s.
    std::chrono::milliseconds verdict_timeout = detail::not_given;
    /// A wait of this length is looked at for a deadlock: 1 s. At least 50 ms.
    std::chrono::milliseconds long_wait = detail::not_given;

    friend bool operator==(failure_detector_options const&, failure_detector_options const&) = default;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_FAILURE_DETECTOR_OPTIONS_HPP
