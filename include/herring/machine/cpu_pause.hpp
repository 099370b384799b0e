// herring: the instruction for a loop that spins.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_CPU_PAUSE_HPP
#define HERRING_MACHINE_CPU_PAUSE_HPP

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE::detail {

/// Lets the other thread of the core run for a moment.
inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_CPU_PAUSE_HPP
