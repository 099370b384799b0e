// herring: the clock of deadlines, the timeout that never ends, times for system calls, and a sleep.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_TIME_HPP
#define HERRING_MACHINE_TIME_HPP

#include "herring/base/config.hpp"

#include <chrono>

#include <time.h>

namespace HERRING_NAMESPACE {

/// Monotonic clock: deadlines do not move when the time of day is set.
using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

/// A timeout of a hundred years.
inline constexpr std::chrono::milliseconds never = std::chrono::hours(24 * 365 * 100);

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail {

/// Converts a span, or a point of the monotonic clock as its time since the epoch.
inline timespec timespec_of(std::chrono::nanoseconds time) noexcept {
    return {time.count() / 1'000'000'000, time.count() % 1'000'000'000};
}

/// Sleeps, without `<thread>`.
///
/// Blocks:  for `time`, or until a signal.
inline void sleep_for(std::chrono::nanoseconds time) noexcept {
    timespec const span = timespec_of(time);
    ::nanosleep(&span, nullptr);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_TIME_HPP
