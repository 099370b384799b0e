// herring: sleeping on a word of memory, within a process or between processes (Linux futex).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_FUTEX_HPP
#define HERRING_DETAIL_FUTEX_HPP

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace herring::detail {

/// Sleeps while `word` holds `expected`, at most for `most`; may return early for no reason. For words in memory
/// that processes share.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds most) noexcept {
    if (most.count() <= 0) return;
    timespec const time{static_cast<std::time_t>(most.count() / 1'000'000'000),
                        static_cast<long>(most.count() % 1'000'000'000)};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

/// Wakes everyone who sleeps on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace herring::detail

#endif // HERRING_DETAIL_FUTEX_HPP
