// herring: `join(MPI_Comm)`: becomes one rank of a world within an MPI program, which gives the ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_MPI_HPP
#define HERRING_JOIN_MPI_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"
#include "herring/join/gather.hpp"
#include "herring/join/gather_call.hpp"
#include "herring/join/join.hpp"
#include "herring/model/join_options.hpp"

// The C++ bindings, which MPI-3 removed, would bring virtual functions and warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <cstddef>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE {

namespace detail {

HERRING_SETUP inline void mpi_check(int rc, int rank, char const* call) {
    if (rc == MPI_SUCCESS) return;
    throw error(errc::unsupported, rank, -1, "join",
                {call, " failed with MPI error ", rc,
                 "; join needs a valid intra-communicator, between MPI_Init and MPI_Finalize"});
}

/// Gathers bytes of all ranks by MPI.
HERRING_SETUP inline gather_result mpi_gather(MPI_Comm communicator, int rank, int size,
                                              std::span<std::byte const> mine) {
    fixed_array<int> counts(static_cast<std::size_t>(size)), begins(static_cast<std::size_t>(size));
    int const count = static_cast<int>(mine.size());
    mpi_check(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, communicator), rank,
              "MPI_Allgather");
    fixed_array<std::size_t> sizes(counts.size());
    int end = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        begins[r] = end;
        if (counts[r] < 0 || __builtin_add_overflow(end, counts[r], &end))
            throw error(
                errc::protocol, rank, static_cast<int>(r), "join",
                "it gives a number of bytes that no rank gives; see that every rank runs the same build");
        sizes[r] = static_cast<std::size_t>(counts[r]);
    }
    gather_result all(std::move(sizes));
    mpi_check(MPI_Allgatherv(mine.data(), count, MPI_BYTE, all[0].data(), counts.data(), begins.data(),
                             MPI_BYTE, communicator),
              rank, "MPI_Allgatherv");
    return all;
}

/// Throws outside MPI_Init and MPI_Finalize, where MPI would end the program.
HERRING_SETUP inline void mpi_runs() {
    int begun = 0, over = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&over);
    if (begun != 0 && over == 0) return;
    throw error(errc::bad_state, -1, -1, "join",
                {begun == 0 ? "MPI_Init has not been called" : "MPI_Finalize has been called",
                 "; join(MPI_Comm) asks MPI who is who: call it between the two"});
}

} // namespace detail

/// Joins the ranks of `communicator`, in their order there. Collective over `communicator`.
///
/// MPI gives number and order of the ranks; all other settings are those of `join()`. Rank 0 listens on
/// HERRING_ADDR if that is set, else on a free port: of HERRING_INTERFACE, of 127.0.0.1 if all ranks are on
/// one node, or of its first address that is not loopback. If no rank has a secret, rank 0 draws one, and MPI
/// carries it to the others.
///
/// A rank that waits in a reducer is not inside MPI: name `waiting::mpi` if messages of MPI may be pending.
///
/// Cost:     MPI_Allgather and MPI_Allgatherv, twice, of some bytes per rank. MPI is not used afterwards, and
///           may be finalised before the world ends.
/// Errors:   as `join()`; `bad_state` before MPI_Init and after MPI_Finalize.
/// Example:  MPI_Init(&argc, &argv);
///           herring::world world = herring::join(MPI_COMM_WORLD);
HERRING_SETUP inline world join(MPI_Comm communicator, join_options const& options = {}) {
    detail::mpi_runs();
    int rank = 0, size = 0;
    detail::mpi_check(MPI_Comm_rank(communicator, &rank), -1, "MPI_Comm_rank");
    detail::mpi_check(MPI_Comm_size(communicator, &size), rank, "MPI_Comm_size");
    auto const gather = [&](std::span<std::byte const> mine) {
        return detail::mpi_gather(communicator, rank, size, mine);
    };
    return detail::join_by(detail::gather_call::by(gather), rank, size, options,
                           {"MPI", "communicators", true});
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_MPI_HPP
