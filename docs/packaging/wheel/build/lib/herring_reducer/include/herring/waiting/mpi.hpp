// herring: the waiting policy `mpi`, for MPI programs: pending MPI messages make progress while a rank waits.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WAITING_MPI_HPP
#define HERRING_WAITING_MPI_HPP

#include "herring/base/config.hpp"
#include "herring/waiting/waiting.hpp"

// The C++ bindings that MPI-3 removed would bring virtual functions and warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

namespace HERRING_NAMESPACE::waiting {

/// Waits as MPI libraries do: keeps the core or yields it, never sleeps, and lets MPI progress pending
/// messages.
///
/// An `MPI_Isend` of a large message progresses only while its sender is inside MPI. A rank that waits in
/// Herring is not; a rank that receives that message before its own call of Herring would deadlock with the
/// sender.
///
/// Cost:    a core while a rank waits, and one `MPI_Iprobe` each 8 rounds, about 0.2 µs.
/// Threads: the waiting thread calls MPI: `progress::caller`, on a thread that may call MPI.
/// Lifetime: between MPI_Init and MPI_Finalize.
struct mpi {
    using axis = axes::waiting;
    static constexpr std::int64_t spin_ns = 20'000; ///< pauses up to this limit, then yields

    wait_action next(std::uint32_t idle_rounds, std::int64_t idle_nanoseconds,
                     bool oversubscribed) const noexcept {
        if (idle_rounds % 8 == 7) {
            int pending = 0;
            (void)MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &pending, MPI_STATUS_IGNORE);
        }
        return !oversubscribed && idle_nanoseconds < spin_ns ? wait_action::pause : wait_action::yield;
    }
};

static_assert(waiting_policy<mpi>);
static_assert(std::is_empty_v<mpi>);

} // namespace HERRING_NAMESPACE::waiting

#endif // HERRING_WAITING_MPI_HPP
