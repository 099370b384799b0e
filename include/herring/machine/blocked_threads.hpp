// herring: whether every thread of this process waits in Herring, so that only other ranks can make progress.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_BLOCKED_THREADS_HPP
#define HERRING_MACHINE_BLOCKED_THREADS_HPP

#include "herring/base/config.hpp"

#include <atomic>
#include <cstdint>

#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Counts this process's threads that run no code of the program: Herring's own threads, and threads in a long wait.
///
/// A thread is added after it has started or begun to wait, and removed before it ends or goes on: the counts may be too
/// low for a moment, never too high.
/// Threads:  any. A forked child begins with zero.
class blocked_threads {
  public:
    static void own(int more) noexcept { change(more, 0); }
    static void waiting(int more) noexcept { change(0, more); }

    /// A number that changes with the counts, and with every thread that begins or ends a wait.
    static std::uint64_t mark() noexcept { return word().load(std::memory_order_seq_cst); }
    static std::uint64_t waits_in(std::uint64_t mark) noexcept { return mark & low; }

    /// Whether the counts at `mark` are all threads that this process has now.
    HERRING_SETUP static bool are_all(std::uint64_t mark) noexcept {
        struct stat tasks {};
        if ((mark >> 42) != (static_cast<std::uint64_t>(::getpid()) & pids)) return false;
        if (::stat("/proc/self/task", &tasks) != 0) return false;
        return tasks.st_nlink == (mark & low) + (mark >> 12 & low) + 2; // one link a thread, and "." and ".."
    }

  private:
    // pid 22 bits, changes 18, own 12, waiting 12.
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
            if (inherited && own + waiting < 0) return; // of a thread that the child does not have
            std::uint64_t const was = inherited ? 0 : before;
            std::uint64_t const changes = ((was >> 24) + 1) & 0x3FFFF;
            auto const owned = (was >> 12) + static_cast<std::uint64_t>(static_cast<std::int64_t>(own));
            auto const waited = was + static_cast<std::uint64_t>(static_cast<std::int64_t>(waiting));
            after = pid << 42 | changes << 24 | (owned & low) << 12 | (waited & low);
        } while (!word().compare_exchange_weak(before, after, std::memory_order_seq_cst));
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_BLOCKED_THREADS_HPP
