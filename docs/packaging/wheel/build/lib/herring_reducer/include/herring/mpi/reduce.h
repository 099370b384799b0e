// herring: a replacement for MPI_Allreduce in C, with the same arguments.
// SPDX-License-Identifier: Apache-2.0
//
// C99 or newer, and C++. The definitions are compiled in one separate C++20 file, as those of
// herring/mpi/reduce.hpp: `#include <herring/mpi/src.hpp>`, or CMake's herring::mpi_reduce.
#ifndef HERRING_MPI_REDUCE_H
#define HERRING_MPI_REDUCE_H

// Leaves out the C++ bindings, which MPI-3 removed, as herring/mpi/reduce.hpp does.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

// Reduces as MPI_Allreduce does, for these operations and types:
//
//   MPI_SUM, MPI_MIN, MPI_MAX   MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT32_T, MPI_INT64_T, MPI_FLOAT,
//                               MPI_DOUBLE
//   MPI_MINLOC, MPI_MAXLOC      MPI_2INT, MPI_LONG_INT, MPI_FLOAT_INT, MPI_DOUBLE_INT
//
// Collective: all ranks of the communicator make the same calls on it, in the same order. Result, cost,
// threads and lifetime are those of herring/mpi/reduce.hpp.
//
// Shape:    count values or pairs in, count out, on every rank. in == out and in == MPI_IN_PLACE reduce `out`
//           in place; other overlaps are an error. count = 0, on all ranks, does nothing.
// Errors:   by the communicator's error handler. MPI_ERRORS_ARE_FATAL, the default: one sentence on stderr,
//           then MPI_Abort. MPI_ERRORS_RETURN and handlers of the program: the handler is called, and the
//           function returns MPI_ERR_TYPE or MPI_ERR_OP (not in the table above) or MPI_ERR_OTHER;
//           `herring_mpi_error` returns the sentence. Set the handler before the first reduction of the
//           communicator.
// Example:  #define MPI_Allreduce herring_mpi_allreduce
int herring_mpi_allreduce(void const* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

// Returns the sentence of the last error in this thread: the rank that reports, the rank at fault, the
// remedy. Empty if there was none.
//
// Lifetime: until the next error in this thread.
char const* herring_mpi_error(void);

#ifdef __cplusplus
}
#endif

#endif // HERRING_MPI_REDUCE_H
