// herring: threads of Herring, and the count of those of this process that run no code of the program.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_THREADS_HPP
#define HERRING_MACHINE_THREADS_HPP

#include "herring/base/config.hpp"

#include <atomic>
#include <cstdint>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Starts `body(self)` in a thread with all signals blocked, so that the program's threads get the signals of
/// the process. The mask of the calling thread stays as it was.
///
/// Lifetime: the caller joins or detaches `started`.
/// Errors:   returns the error code of pthread_create; 0: the thread runs.
[[nodiscard]] HERRING_SETUP inline int start_thread(pthread_t& started, void* (*body)(void*),
                                                    void* self) noexcept {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int const refused = ::pthread_create(&started, nullptr, body, self);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return refused;
}

/// Returns advice for the text of an error when start_thread failed: EAGAIN stands for several limits.
HERRING_SETUP inline char const* thread_advice() noexcept {
    rlimit space{};
    return ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY
               ? "; its stack takes address space, which is limited here: raise ulimit -v, else ulimit -u"
               : "; raise ulimit -u, or the limit of tasks of its control group (pids.max)";
}

/// Counts the threads of this process that run no code of the program: Herring's own, and those in a long
/// wait. If they are all threads, only other ranks can make progress.
///
/// A thread is added after it has started or begun to wait, and removed before it ends or continues: the
/// counts may be too low for a moment, never too high.
/// Threads:  any. A forked child begins with zero.
class blocked_threads {
  public:
    static void own(int more) noexcept { change(more, 0); }
    static void waiting(int more) noexcept { change(0, more); }

    /// Returns a number that changes with the counts, and with every begin or end of a wait.
    static std::uint64_t mark() noexcept { return word().load(std::memory_order_seq_cst); }
    static std::uint64_t waits_in(std::uint64_t mark) noexcept { return mark & low; }

    /// True if the threads counted at `mark` are all threads that this process has now.
    HERRING_SETUP static bool are_all(std::uint64_t mark) noexcept {
        struct stat tasks {};
        if ((mark >> 42) != (static_cast<std::uint64_t>(::getpid()) & pids)) return false;
        if (::stat("/proc/self/task", &tasks) != 0) return false;
        return tasks.st_nlink == (mark & low) + (mark >> 12 & low) + 2; // one link a thread, and "." and ".."
    }

  private:
    // Bits of the word: pid 22, changes 18, own 12, waiting 12.
    static constexpr std::uint64_t low = 0xFFF, pids = 0x3FFFFF;

    static std::atomic<std::uint64_t>& word() noexcept {
        static constinit std::atomic<std::uint64_t> counts{0};
        return counts;
    }
    HERRING_SETUP static void change(int own, int waiting) noexcept {
        std::uint64_t const pid = static_cast<std::uint64_t>(::getpid()) & pids;
        std::uint64_t before = mark(), after = 0;
        do {
            bool const inherited = before >> 42 != pid;
            if (inherited && own + waiting < 0) return; // a thread that the child does not have
            std::uint64_t const was = inherited ? 0 : before;
            std::uint64_t const changes = ((was >> 24) + 1) & 0x3FFFF;
            auto const owned = (was >> 12) + static_cast<std::uint64_t>(static_cast<std::int64_t>(own));
            auto const waited = was + static_cast<std::uint64_t>(static_cast<std::int64_t>(waiting));
            after = pid << 42 | changes << 24 | (owned & low) << 12 | (waited & low);
        } while (!word().compare_exchange_weak(before, after, std::memory_order_seq_cst));
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_THREADS_HPP
