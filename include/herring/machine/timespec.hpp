// herring: times as the system calls take them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_TIMESPEC_HPP
#define HERRING_MACHINE_TIMESPEC_HPP

#include "herring/base/config.hpp"

#include <chrono>

#include <time.h>

namespace HERRING_NAMESPACE::detail {

/// A span, or a point on the monotonic clock as its time since the epoch.
inline timespec timespec_of(std::chrono::nanoseconds time) noexcept {
    return {time.count() / 1'000'000'000, time.count() % 1'000'000'000};
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_TIMESPEC_HPP
