// herring: sleeping on a word of memory, within a process or between processes (Linux futex).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_FUTEX_HPP
#define HERRING_MACHINE_FUTEX_HPP

#include "herring/base/config.hpp"
#include "herring/machine/timespec.hpp"

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Sleeps while `word` holds `expected`, at most for `most`; may return early for no reason.
///
/// `shared`: the word lies in memory that processes share. Sleepers and wakers of a word say the same.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::chrono::nanoseconds most, bool shared = true) noexcept {
    if (most.count() <= 0) return;
    timespec const time = timespec_of(most);
    ::syscall(SYS_futex, &word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, &time, nullptr, 0);
}

/// Wakes everyone who sleeps on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word, bool shared = true) noexcept {
    ::syscall(SYS_futex, &word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_FUTEX_HPP
