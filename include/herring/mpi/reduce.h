// herring: MPI_Allreduce's replacement for C: the same arguments, by Herring.
// SPDX-License-Identifier: Apache-2.0
//
// C99 or newer, and C++. The definitions are compiled in one separate C++20 file, as those of herring/mpi/reduce.hpp:
// `#include <herring/mpi/src.hpp>`, or CMake's herring::mpi_reduce.
#ifndef HERRING_MPI_REDUCE_H
#define HERRING_MPI_REDUCE_H

// Without the C++ bindings that MPI-3 removed, as herring/mpi/reduce.hpp.
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

// As MPI_Allreduce, of these types and operations:
//
//   MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE    MPI_SUM, MPI_MIN, MPI_MAX
//   MPI_2INT, MPI_LONG_INT, MPI_FLOAT_INT, MPI_DOUBLE_INT                                MPI_MINLOC, MPI_MAXLOC
//
// Collective: all ranks of the communicator make the same calls on it, in the same order. Result, cost, threads and
// lifetime are those of herring/mpi/reduce.hpp.
//
// Shape:    count values or pairs in, count out, on every rank. in == out and in == MPI_IN_PLACE reduce `out` in place;
//           other overlaps are an error. count = 0, on all ranks, does nothing.
// Errors:   as the communicator's error handler has it. MPI_ERRORS_ARE_FATAL, the default: one sentence on stderr, then
//           MPI_Abort. MPI_ERRORS_RETURN and handlers of the program: the handler is called, and MPI_ERR_TYPE or
//           MPI_ERR_OP (what is not in the table above) or MPI_ERR_OTHER is returned; `herring_mpi_error` has the
//           sentence. Set the handler before the first reduction of the communicator.
// Example:  #define MPI_Allreduce herring_mpi_allreduce
int herring_mpi_allreduce(void const* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

// The sentence of the last error in this thread: who reports, who is at fault, the remedy. Empty if there was none.
//
// Lifetime: until the next error in this thread.
char const* herring_mpi_error(void);

#ifdef __cplusplus
}
#endif

#endif // HERRING_MPI_REDUCE_H
