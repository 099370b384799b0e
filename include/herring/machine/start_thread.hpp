// herring: a thread of Herring's own, which takes none of the program's signals.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_START_THREAD_HPP
#define HERRING_MACHINE_START_THREAD_HPP

#include "herring/base/config.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

namespace HERRING_NAMESPACE::detail {

/// Starts `body(self)` in a thread with all signals blocked: a signal that is sent to the process is for a thread of the
/// program's. The calling thread's mask is the same afterwards.
///
/// Lifetime: who calls joins or detaches `started`.
/// Errors:   returns what pthread_create does: 0, or an error code, and then there is no thread.
[[nodiscard]] HERRING_SETUP inline int start_thread(pthread_t& started, void* (*body)(void*),
                                                    void* self) noexcept {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int const refused = ::pthread_create(&started, nullptr, body, self);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return refused;
}

/// What to do where start_thread was refused, for an error's text: EAGAIN is the kernel's answer to several limits.
HERRING_SETUP inline char const* thread_advice() noexcept {
    rlimit space{};
    return ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY
               ? "; its stack takes address space, which is limited here: raise ulimit -v, else ulimit -u"
               : "; raise ulimit -u, or the limit of tasks of its control group (pids.max)";
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_START_THREAD_HPP
