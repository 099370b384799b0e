// herring: MPI_Allreduce as MPI codes call it, done by Herring: sum, min and max over a communicator.
// SPDX-License-Identifier: Apache-2.0
//
// Declarations only: C++98 or newer, any flags, -ffast-math too. What they stand for is compiled in one file of its own,
// which is C++20: `#include <herring/mpi/src.hpp>`, or CMake's herring::mpi_reduce.
#ifndef HERRING_MPI_REDUCE_HPP
#define HERRING_MPI_REDUCE_HPP

// The C++ bindings that MPI-3 removed. Code that uses them includes mpi.h itself, before this header.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <cstddef>

namespace herring {
namespace mpi {

// `sum`, `min` and `max` of int, long, long long, float and double.
//
//   sum(in, out, n, comm)    n values; n is 1 and comm is MPI_COMM_WORLD where they are left out
//   total = sum(x, comm)     one value
//
// Collective, as MPI_Allreduce: all ranks of the communicator make the same calls on it, in the same order.
//
// Shape:    n values in, n out, on every rank. in == out and in == MPI_IN_PLACE reduce `out` in place; other overlaps are
//           refused. With n = 0, on all ranks, nothing is done.
// Result:   the same bits on every rank and in every run, combined in the order of ranks within a node, then of nodes.
//           Sums of integers wrap. For min and max a NaN wins, and −0 is less than +0.
// Cost:     the first call on a communicator connects its ranks, some milliseconds; of each kind of reduction (sums of
//           float, of double, of integers; min and max) too, 1 ms. Then one MPI_Comm_get_attr, and the reduction. Sums of
//           int, and min and max, are copied to 64-bit words and back.
// Blocks:   until all ranks are here. A rank that waits keeps its core, and MPI's pending messages go on.
// Threads:  as MPI_Allreduce of an MPI library: those that may call MPI, one at a time on a communicator.
//           MPI_THREAD_FUNNELED: the main thread. Calls inside an OpenMP parallel region belong into its master section.
// Lifetime: from MPI_Init to MPI_Finalize. What a communicator holds ends with it: MPI_Comm_free, at the latest
//           MPI_Finalize. A duplicate (MPI_Comm_dup) starts anew.
// Errors:   one sentence on stderr, then MPI_Abort: `handle_errors` changes that. After an error, `out` is undefined.
//
// Values go in by address, `x` too: a local variable that has to be in memory keeps gcc -ffast-math from vectorising
// the caller's loop that computes it, as MPI_Allreduce(&x, ...) does. So the program's own bits stay what they were.

// clang-format off
void sum(int const*       in, int*       out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void sum(long const*      in, long*      out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void sum(long long const* in, long long* out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void sum(float const*     in, float*     out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void sum(double const*    in, double*    out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);

void min(int const*       in, int*       out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void min(long const*      in, long*      out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void min(long long const* in, long long* out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void min(float const*     in, float*     out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void min(double const*    in, double*    out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);

void max(int const*       in, int*       out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void max(long const*      in, long*      out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void max(long long const* in, long long* out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void max(float const*     in, float*     out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void max(double const*    in, double*    out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);

int       sum(int const&       x, MPI_Comm comm = MPI_COMM_WORLD);
long      sum(long const&      x, MPI_Comm comm = MPI_COMM_WORLD);
long long sum(long long const& x, MPI_Comm comm = MPI_COMM_WORLD);
float     sum(float const&     x, MPI_Comm comm = MPI_COMM_WORLD);
double    sum(double const&    x, MPI_Comm comm = MPI_COMM_WORLD);

int       min(int const&       x, MPI_Comm comm = MPI_COMM_WORLD);
long      min(long const&      x, MPI_Comm comm = MPI_COMM_WORLD);
long long min(long long const& x, MPI_Comm comm = MPI_COMM_WORLD);
float     min(float const&     x, MPI_Comm comm = MPI_COMM_WORLD);
double    min(double const&    x, MPI_Comm comm = MPI_COMM_WORLD);

int       max(int const&       x, MPI_Comm comm = MPI_COMM_WORLD);
long      max(long const&      x, MPI_Comm comm = MPI_COMM_WORLD);
long long max(long long const& x, MPI_Comm comm = MPI_COMM_WORLD);
float     max(float const&     x, MPI_Comm comm = MPI_COMM_WORLD);
double    max(double const&    x, MPI_Comm comm = MPI_COMM_WORLD);
// clang-format on

/// What is called when a reduction fails: with the communicator (MPI_COMM_NULL where the call had none) and one sentence
/// that says who failed, whom it names, and what to do. It may throw, and its exception leaves the reduction; where it
/// returns, MPI_Abort follows.
typedef void (*error_handler)(MPI_Comm comm, char const* sentence);

/// Sets the handler, or with a null pointer the default one, which writes the sentence to stderr. Returns the last one.
///
/// Once a rank of a communicator has died, the default one ends the job also while this rank is in no reduction: it may
/// wait in MPI for that rank. A handler is called in reductions only.
///
/// Threads:  not while another thread reduces. The default one may call MPI_Abort in a thread of Herring's.
error_handler handle_errors(error_handler handler);

/// Sets for how long a reduction may wait for ranks that are alive and do not come. A dead rank ends it at once, and one
/// that shows no sign of life after 5 s (HERRING_PEER_TIMEOUT), whatever is set here. Where nothing is set, HERRING_DEFAULT_TIMEOUT
/// holds, else a day. Zero or less is refused.
///
/// Units:    seconds.
/// Threads:  not while another thread reduces.
void set_timeout(double seconds);

} // namespace mpi
} // namespace herring

#endif // HERRING_MPI_REDUCE_HPP
