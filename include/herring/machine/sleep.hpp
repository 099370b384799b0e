// herring: a plain sleep, without <thread>.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_SLEEP_HPP
#define HERRING_MACHINE_SLEEP_HPP

#include "herring/base/config.hpp"
#include "herring/machine/timespec.hpp"

#include <chrono>

#include <time.h>

namespace HERRING_NAMESPACE::detail {

/// Blocks:  for `time`, or until a signal.
inline void sleep_for(std::chrono::nanoseconds time) noexcept {
    timespec const span = timespec_of(time);
    ::nanosleep(&span, nullptr);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_SLEEP_HPP
