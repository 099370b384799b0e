// herring: what a task for gaps is: work that can be resumed, in quanta of bounded length.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GAPS_TASK_HPP
#define HERRING_GAPS_TASK_HPP

#include "herring/base/config.hpp"

#include <chrono>
#include <concepts>

namespace HERRING_NAMESPACE {

/// Work that is done a quantum at a time, each of which goes on where the one before ended.
///
/// `quantum()`: for how long one `next()` takes a core at most. One that takes longer is believed less from then on.
/// `next()`:    does a quantum, on the thread that waits. False: there is nothing to do now; it is asked again in the next step.
///              It must not call the reducer (`bad_state`).
template <class Task>
concept gap_task = requires(Task& task) {
    { task.quantum() }
    noexcept->std::convertible_to<std::chrono::nanoseconds>;
    { task.next() }
    noexcept->std::same_as<bool>;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_GAPS_TASK_HPP
