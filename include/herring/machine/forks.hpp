// herring: the process that made an object, and what a process that is forked off later must not do with it.
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

/// Counts the forks between the first object of Herring's and this process, and has a forked child give up its parent's sockets, or
/// a child that lives on would keep the connections of a parent that was killed.
///
/// A child keeps the numbers: a socket that is connected to nothing takes the place of each, so that whatever still knows a number
/// neither reaches the parent's peers nor closes a descriptor of the program's.
///
/// Not seen: a child of vfork, posix_spawn, clone or _Fork, which run no handlers of pthread_atfork. It must call exec or _exit.
/// Threads:  any.
class forks {
  public:
    static unsigned count() noexcept { return count_.load(std::memory_order_relaxed); }

    /// From now on forks are counted.
    HERRING_SETUP static void watch() noexcept {
        if (!watched_.exchange(true)) (void)::pthread_atfork(nullptr, nullptr, in_child);
    }

    /// `socket` is Herring's until it is closed, wherever that is. Returns it, with errno as it was.
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
    static constexpr std::size_t most = 16'384; // descriptors above it stay open in a child

    // Only calls that a signal handler may make: a thread that the child does not have may hold any lock.
    HERRING_SETUP static void in_child() noexcept {
        count_.store(count() + 1, std::memory_order_relaxed);
        int const unconnected = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        for (int fd = 0, end = end_.exchange(0); fd < end; ++fd) {
            std::uint32_t const inode = inodes_[fd].exchange(0, std::memory_order_relaxed);
            struct stat is {};
            // A number whose socket was closed may be the program's since: the inode tells.
            if (inode == 0 || ::fstat(fd, &is) != 0 || !S_ISSOCK(is.st_mode) ||
                static_cast<std::uint32_t>(is.st_ino) != inode)
                continue;
            if (unconnected < 0 || ::dup3(unconnected, fd, O_CLOEXEC) < 0) ::close(fd);
        }
        if (unconnected >= 0) ::close(unconnected);
    }

    inline static constinit std::atomic<unsigned> count_{0};
    inline static constinit std::atomic<bool> watched_{false};
    inline static constinit std::atomic<int> end_{0}; // behind the highest number
    inline static constinit std::atomic<std::uint32_t> inodes_[most]{};
};

/// The process that made an object, which only this one may use.
///
/// Cost: a question is one relaxed load.
class owner_process {
  public:
    owner_process() noexcept : id_(::getpid()) { forks::watch(); }

    /// False in a process that was forked off since.
    bool is_this() const noexcept { return forks_ == forks::count(); }

    /// What a call in another process gets. `object`: «world».
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
