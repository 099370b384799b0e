// herring: waiting on a word of memory: the pause of a spin loop, and sleep and wake-up (Linux futex).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_FUTEX_HPP
#define HERRING_MACHINE_FUTEX_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Pauses in a spin loop: gives way to the other hardware thread of the core.
inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Sleeps while `word` holds `expected`, at most for `most`. May return early (spuriously).
///
/// `shared`: the word lies in memory that processes share; the same for all sleepers and wakers of a word.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::chrono::nanoseconds most, bool shared = true) noexcept {
    if (most.count() <= 0) return;
    timespec const time = timespec_of(most);
    ::syscall(SYS_futex, &word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, &time, nullptr, 0);
}

/// Wakes all threads that sleep on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word, bool shared = true) noexcept {
    ::syscall(SYS_futex, &word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_FUTEX_HPP
