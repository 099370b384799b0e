// herring: the clock of deadlines, and the timeout that never ends.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_TIME_HPP
#define HERRING_MACHINE_TIME_HPP

#include "herring/base/config.hpp"

#include <chrono>

namespace HERRING_NAMESPACE {

/// Monotonic: deadlines do not move when the time of day is set.
using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

/// As a timeout: a hundred years.
inline constexpr std::chrono::milliseconds never = std::chrono::hours(24 * 365 * 100);

} // namespace HERRING_NAMESPACE

#endif // HERRING_MACHINE_TIME_HPP
