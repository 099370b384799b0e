// herring: the network of a machine, divided among the tenants of a service by their shares.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_PACING_HPP
#define HERRING_SERVICE_PACING_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/machine/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::leasing {

/// A process that serves a rank, and the bytes that its sockets have moved.
struct served_rank {
    pid_t process = -1;
    std::uint64_t moved = 0;
    std::size_t sockets = 0;
    bool busy = false; ///< since the last look bytes were moved, or some are on their way

    /// Looks at the TCP sockets of the process.
    HERRING_SETUP void look() noexcept {
        std::uint64_t moved_now = 0;
        bool waits = false; // a rank that is limited to little may have moved nothing
        sockets = 0;
        for_each_descriptor([&](int copy) {
            socket_report report;
            if (!report.read(copy)) return; // no TCP socket
            ++sockets;
            moved_now += report.acknowledged + report.received;
            waits = waits || report.on_its_way;
        });
        busy = waits || moved_now > moved + quiet;
        moved = moved_now;
    }
    /// Limits what the sockets of the last look send together to `rate` bytes a second.
    HERRING_SETUP void limit(std::uint64_t rate) const noexcept {
        // One of the sockets is the control connection, which needs nothing.
        std::uint64_t const each = rate / (std::max<std::size_t>(sockets, 2) - 1) + 1;
        for_each_descriptor([&](int copy) {
            (void)::setsockopt(copy, SOL_SOCKET, SO_MAX_PACING_RATE, &each, sizeof each); // else no socket
        });
    }

    static constexpr std::uint64_t quiet = 1024; ///< bytes between two looks that heartbeats have

  private:
    // Holds one copy at a time, and none afterwards: it would keep a killed process's connection open.
    template <class Act> HERRING_SETUP void for_each_descriptor(Act const& act) const noexcept {
        descriptor const of(static_cast<int>(::syscall(SYS_pidfd_open, process, 0u)));
        DIR* const all = ::opendir(text({"/proc/", process, "/fd"}).c_str());
        while (dirent const* const entry = all == nullptr ? nullptr : ::readdir(all)) {
            descriptor const copy(
                static_cast<int>(::syscall(SYS_pidfd_getfd, of.get(), std::atoi(entry->d_name), 0u)));
            if (copy.get() >= 0) act(copy.get());
        }
        if (all != nullptr) ::closedir(all);
    }
};

/// Returns 0 if the system lets this process copy the sockets of those that it starts, else why not, as in
/// errno. Tries it with a child, which it forks, and `held`, a descriptor that is open.
HERRING_SETUP inline int fault_of_copies(int held) noexcept {
    pid_t const parent = ::getpid(), child = ::fork();
    if (child < 0) return errno;
    if (child == 0) {
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent) ::pause();
        ::_exit(0);
    }
    descriptor const of(static_cast<int>(::syscall(SYS_pidfd_open, child, 0u)));
    descriptor const copy(of.get() < 0 ? -1
                                       : static_cast<int>(::syscall(SYS_pidfd_getfd, of.get(), held, 0u)));
    int const why = copy.get() < 0 ? errno : 0;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return why;
}

/// Returns the rate of each rank of a tenant: its part of what it divides, by share, with other tenants that
/// are busy; 0 only where the whole rate is.
constexpr std::uint64_t rate_of_rank(std::uint64_t rate, int share, int others, int busy_ranks) noexcept {
    return std::max(std::min(rate, std::uint64_t{1}),
                    rate * static_cast<std::uint64_t>(share) / static_cast<std::uint64_t>(share + others) /
                        static_cast<std::uint64_t>(std::max(busy_ranks, 1)));
}

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_PACING_HPP
