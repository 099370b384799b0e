// herring: HERRING_SECRET as a process was started with it: read once, and not left where children, /proc and core dumps have it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SECRET_VARIABLE_HPP
#define HERRING_CONTROL_SECRET_VARIABLE_HPP

#include "herring/base/config.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/secret_key.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

// In `herring` itself, not in the namespace of the translation unit's flags (base/target.hpp): a process has one environment.
// Visible, so that all shared objects of a program have the same.
namespace herring::process_wide {
[[gnu::visibility("default")]] inline constinit std::atomic<::pid_t> secret_of_start_busy{
    0}; // the process whose thread looks
[[gnu::visibility("default")]] inline constinit char const* secret_of_start =
    nullptr; // a copy, in pages that core dumps leave out; while busy
} // namespace herring::process_wide

namespace HERRING_NAMESPACE::detail {

/// Whether this is in the block of variables with which the kernel started the process: what /proc/PID/environ shows. A string of
/// setenv or putenv is elsewhere, and may be a constant. It lies between the 16 random bytes and the name of the program.
inline bool is_of_start(char const* variable) noexcept {
    auto const at = reinterpret_cast<std::uintptr_t>(variable);
    return ::getauxval(AT_RANDOM) < at && at < ::getauxval(AT_EXECFN);
}

/// HERRING_SECRET. Where it is as the process was started with it its characters are overwritten by zeroes once they are copied: the
/// variable is then empty for children that call exec, in /proc/PID/environ and in core dumps. The pointers of the environment stay as
/// they are, so that other threads may call getenv. Who reads it again gets the copy, also in a child without exec. A value
/// that the program has set itself is the program's.
///
/// Threads:  any.
/// Lifetime: of the process, or the variable's.
HERRING_SETUP inline std::string_view secret_variable(variables const& from) noexcept {
    // A process that was forked off while another thread looked is not kept waiting by its copy of that.
    ::pid_t const here = ::getpid();
    for (::pid_t by = 0;
         !process_wide::secret_of_start_busy.compare_exchange_weak(by, here, std::memory_order_acquire);)
        if (by == here) {
            by = 0;
            ::sched_yield();
        }
    std::string_view text = from.text("HERRING_SECRET");
    if (text.data() != nullptr && is_of_start(text.data())) {
        char const*& copy = process_wide::secret_of_start;
        if (copy == nullptr && !text.empty()) {
            void* const room =
                ::mmap(nullptr, text.size() + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (room != MAP_FAILED) {
                (void)::madvise(room, text.size() + 1, MADV_DONTDUMP);
                std::memcpy(room, text.data(), text.size());
                copy = static_cast<char const*>(room);
                erase(const_cast<char*>(text.data()), text.size());
            }
        }
        if (copy != nullptr) text = copy;
    }
    process_wide::secret_of_start_busy.store(0, std::memory_order_release);
    return text;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SECRET_VARIABLE_HPP
