// herring: the times of a world: the failure detector's, and the deadline of calls that are given none.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WORLD_TIMES_HPP
#define HERRING_CONTROL_WORLD_TIMES_HPP

#include "herring/base/config.hpp"
#include "herring/model/failure_detector_options.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// The deadline of a call that is given none, where neither options nor variables have one.
inline constexpr std::chrono::milliseconds usual_timeout{30'000};

/// The times of a world: rank 0's, for all ranks. Among a program's own, `not_given` is a time that follows
/// from the others.
struct world_times {
    failure_detector_options detector{};
    std::chrono::milliseconds call = not_given; ///< `default_timeout`

    static constexpr std::size_t count = 6;

    /// The times as an array, in the order of `time_names`.
    constexpr std::chrono::milliseconds& operator[](std::size_t i) noexcept {
        std::chrono::milliseconds* const all[count] = {&detector.peer_timeout,  &detector.heartbeat,
                                                       &detector.reply_timeout, &detector.verdict_timeout,
                                                       &detector.long_wait,     &call};
        return *all[i];
    }
    constexpr std::chrono::milliseconds operator[](std::size_t i) const noexcept {
        return world_times(*this)[i];
    }

    friend bool operator==(world_times const&, world_times const&) = default;
};

/// The names of a time in errors.
struct time_name {
    char const* option;
    char const* member;
    char const* variable; ///< nullptr: there is none
    std::chrono::milliseconds least;
};

/// Times below `least` are refused: threads of a healthy process wait longer for a core, and a waiting rank
/// looks around within 50 ms.
inline constexpr time_name time_names[world_times::count] = {
    {"peer_timeout", "failure_detector.peer_timeout", "HERRING_PEER_TIMEOUT", std::chrono::milliseconds(50)},
    {"heartbeat", "failure_detector.heartbeat", nullptr, std::chrono::milliseconds(5)},
    {"reply_timeout", "failure_detector.reply_timeout", nullptr, std::chrono::milliseconds(100)},
    {"verdict_timeout", "failure_detector.verdict_timeout", nullptr, std::chrono::milliseconds(100)},
    {"long_wait", "failure_detector.long_wait", nullptr, std::chrono::milliseconds(50)},
    {"default_timeout", "default_timeout", "HERRING_DEFAULT_TIMEOUT", std::chrono::milliseconds(50)}};

/// Returns all times; those that are not given in proportion to a `peer_timeout` of 5 s or less, and
/// unchanged above it.
constexpr world_times resolve(world_times times) noexcept {
    using std::chrono::milliseconds;
    constexpr milliseconds usual{5'000};
    auto const otherwise = [](milliseconds& time, milliseconds value) {
        if (time == not_given) time = value;
    };
    failure_detector_options& d = times.detector;
    otherwise(d.peer_timeout, usual);
    milliseconds const proportion = std::min(d.peer_timeout, usual);
    otherwise(d.heartbeat, proportion / 10);
    otherwise(d.reply_timeout, std::max(proportion / 5, milliseconds(250)));
    otherwise(d.verdict_timeout, 3 * d.reply_timeout);
    otherwise(d.long_wait, milliseconds(1'000));
    otherwise(times.call, usual_timeout);
    return times;
}

/// The silence after which a rank is not waited for when all are asked for whom they wait: 2 s of 5 s.
constexpr std::chrono::milliseconds hopeless_after(failure_detector_options const& times) noexcept {
    return std::min<std::chrono::milliseconds>(times.peer_timeout, std::chrono::milliseconds(5'000)) * 2 / 5;
}

/// The least time between two attempts to open a silent control connection anew, and the time of the first
/// attempt to connect: 500 ms of 5 s.
constexpr std::chrono::milliseconds resume_step(failure_detector_options const& times) noexcept {
    return hopeless_after(times) / 4;
}

/// The time for which a message that decides the rank in an error is waited for where the network loses
/// packets: 2.75 s of 5 s.
constexpr std::chrono::milliseconds longest_hold_up(failure_detector_options const& times) noexcept {
    return std::min<std::chrono::milliseconds>(times.peer_timeout, std::chrono::milliseconds(5'000)) * 11 /
           20;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_WORLD_TIMES_HPP
