// herring: the process that owns an object, and what a process forked off later must not do with it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_FORKS_HPP
#define HERRING_MACHINE_FORKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Counts the forks since the first object of Herring, and makes a forked child give up the sockets of its
/// parent; a child that lives on would otherwise keep the connections of a killed parent open.
///
/// In the child an unconnected socket takes the place of each such socket: code that still has the number
/// neither reaches the parent's peers nor closes a descriptor of the program.
///
/// Children of vfork, posix_spawn, clone or _Fork are not noticed: these run no handlers of pthread_atfork.
/// Such a child must call exec or _exit.
/// Threads:  any.
class forks {
  public:
    static unsigned count() noexcept { return count_.load(std::memory_order_relaxed); }

    /// Begins to count forks.
    HERRING_SETUP static void watch() noexcept {
        if (!watched_.exchange(true)) (void)::pthread_atfork(nullptr, nullptr, in_child);
    }

    /// Registers `socket` as Herring's until it is closed, by any code. Returns it and keeps errno.
    HERRING_SETUP static int own(int socket) noexcept {
        struct stat is {};
        if (socket < 0 || static_cast<std::size_t>(socket) >= most || ::fstat(socket, &is) != 0)
            return socket;
        inodes_[socket].store(static_cast<std::uint32_t>(is.st_ino), std::memory_order_relaxed);
        for (int end = end_.load(); end <= socket && !end_.compare_exchange_weak(end, socket + 1);) {
        }
        return socket;
    }

  private:
    static constexpr std::size_t most = 16'384; // higher descriptors stay open in a child

    // Only async-signal-safe calls: a thread that the child does not have may hold any lock.
    HERRING_SETUP static void in_child() noexcept {
        count_.store(count() + 1, std::memory_order_relaxed);
        int const unconnected = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        for (int fd = 0, end = end_.exchange(0); fd < end; ++fd) {
            std::uint32_t const inode = inodes_[fd].exchange(0, std::memory_order_relaxed);
            struct stat is {};
            // The inode tells whether the number still is that socket: it may have been closed and reused by
            // the program.
            if (inode == 0 || ::fstat(fd, &is) != 0 || !S_ISSOCK(is.st_mode) ||
                static_cast<std::uint32_t>(is.st_ino) != inode)
                continue;
            if (unconnected < 0 || ::dup3(unconnected, fd, O_CLOEXEC) < 0) ::close(fd);
        }
        if (unconnected >= 0) ::close(unconnected);
    }

    inline static constinit std::atomic<unsigned> count_{0};
    inline static constinit std::atomic<bool> watched_{false};
    inline static constinit std::atomic<int> end_{0}; // the highest number + 1
    inline static constinit std::atomic<std::uint32_t> inodes_[most]{};
};

/// The process that constructed an object and alone may use it.
///
/// Cost: one relaxed load a check.
class owner_process {
  public:
    owner_process() noexcept : id_(::getpid()) { forks::watch(); }

    /// False in a process that was forked off later.
    bool is_this() const noexcept { return forks_ == forks::count(); }

    /// Returns the error of a call in another process. `object`: e.g. "world".
    HERRING_SETUP error refusal(int rank, char const* operation, char const* object) const {
        return error(errc::bad_state, rank, -1, operation,
                     {"this process was forked off after the ", object, " was made (process ", id_,
                      "): only that process may use it; make one of the child's own, or exec"});
    }

  private:
    unsigned forks_ = forks::count();
    pid_t id_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_FORKS_HPP
