// herring: a replacement for MPI_Allreduce: sum, min, max, minloc and maxloc over a communicator.
// SPDX-License-Identifier: Apache-2.0
//
// Declarations only: C++98 or newer, any flags, -ffast-math too. The definitions are compiled in one separate
// C++20 file: `#include <herring/mpi/src.hpp>`, or CMake's herring::mpi_reduce.
#ifndef HERRING_MPI_REDUCE_HPP
#define HERRING_MPI_REDUCE_HPP

// Leaves out the C++ bindings, which MPI-3 removed. Code that uses them includes mpi.h before this header.
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

/// A value and its index, of a rank or cell. Laid out as MPI_2INT, MPI_LONG_INT, MPI_FLOAT_INT,
/// MPI_DOUBLE_INT.
template <class Value> struct indexed {
    Value value;
    int index;
};

// `sum`, `min` and `max` of int, long, long long, float and double; `minloc` and `maxloc` of `indexed` values
// of these.
//
//   sum(in, out, n, comm)           n values; the defaults are n = 1 and comm = MPI_COMM_WORLD
//   total = sum(x, comm)            one value
//   worst = maxloc(x, index, comm)  one value: worst.value is the greatest, worst.index its index
//
// Collective, as MPI_Allreduce: all ranks of the communicator make the same calls on it, in the same order.
//
// Shape:    n values in, n out, on every rank. in == out and in == MPI_IN_PLACE reduce `out` in place; other
//           overlaps are refused. n = 0, on all ranks, does nothing.
// Result:   the same bits on every rank and in every run, combined in the order of ranks within a node, then
//           of nodes. Sums of integers wrap. For min and max a NaN wins, and −0 is less than +0. For minloc
//           and maxloc a NaN wins too; the lowest index wins among equal values (−0 equals +0) and among
//           NaNs.
// Cost:     the first call on a communicator connects its ranks: some milliseconds. The first call of each
//           kind of reduction (sums of float, of double, of integers; min and max; minloc and maxloc) takes 1
//           to 3 ms more. Each call: one MPI_Comm_get_attr, and the reduction. Sums of int, min and max are
//           copied to 64-bit words and back, minloc and maxloc to pairs of words.
// Blocks:   until all ranks have called. A waiting rank keeps its core busy, and progresses MPI's messages.
// Threads:  as MPI_Allreduce: threads that may call MPI, one at a time on a communicator. With
//           MPI_THREAD_FUNNELED only the main thread: in an OpenMP parallel region, within a master section.
// Lifetime: from MPI_Init to MPI_Finalize. The reducers of a communicator end with it: at MPI_Comm_free, at
//           the latest at MPI_Finalize. A duplicate (MPI_Comm_dup) has reducers of its own.
// Errors:   one sentence on stderr, then MPI_Abort; see `handle_errors`. After an error `out` is undefined.
//
// Values are passed by address, `x` too, as in MPI_Allreduce(&x, ...): a local variable that must be in
// memory keeps gcc -ffast-math from vectorising the caller's loop that computes it. So the program computes
// the same bits as with MPI.

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

void minloc(indexed<int> const*       in, indexed<int>*       out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void minloc(indexed<long> const*      in, indexed<long>*      out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void minloc(indexed<long long> const* in, indexed<long long>* out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void minloc(indexed<float> const*     in, indexed<float>*     out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void minloc(indexed<double> const*    in, indexed<double>*    out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);

void maxloc(indexed<int> const*       in, indexed<int>*       out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void maxloc(indexed<long> const*      in, indexed<long>*      out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void maxloc(indexed<long long> const* in, indexed<long long>* out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void maxloc(indexed<float> const*     in, indexed<float>*     out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);
void maxloc(indexed<double> const*    in, indexed<double>*    out, std::ptrdiff_t n = 1, MPI_Comm comm = MPI_COMM_WORLD);

indexed<int>       minloc(int const&       x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<long>      minloc(long const&      x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<long long> minloc(long long const& x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<float>     minloc(float const&     x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<double>    minloc(double const&    x, int index, MPI_Comm comm = MPI_COMM_WORLD);

indexed<int>       maxloc(int const&       x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<long>      maxloc(long const&      x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<long long> maxloc(long long const& x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<float>     maxloc(float const&     x, int index, MPI_Comm comm = MPI_COMM_WORLD);
indexed<double>    maxloc(double const&    x, int index, MPI_Comm comm = MPI_COMM_WORLD);
// clang-format on

// MPI_IN_PLACE is a pointer to void. `type` exists for pointers to void, with results of the types above.
template <class Number> struct reduced_type {};
template <> struct reduced_type<int> { typedef void type; };
template <> struct reduced_type<long> { typedef void type; };
template <> struct reduced_type<long long> { typedef void type; };
template <> struct reduced_type<float> { typedef void type; };
template <> struct reduced_type<double> { typedef void type; };
template <class Void, class Number> struct in_place_of {};
template <class Number> struct in_place_of<void, Number> : reduced_type<Number> {};
template <class Number> struct in_place_of<void const, Number> : reduced_type<Number> {};

/// Returns MPI_IN_PLACE; another pointer to void is an error.
void const* only_in_place(void const* in, MPI_Comm comm);

template <class Void, class Number>
typename in_place_of<Void, Number>::type sum(Void* in, Number* out, std::ptrdiff_t n = 1,
                                             MPI_Comm comm = MPI_COMM_WORLD) {
    sum(static_cast<Number const*>(only_in_place(in, comm)), out, n, comm);
}
template <class Void, class Number>
typename in_place_of<Void, Number>::type min(Void* in, Number* out, std::ptrdiff_t n = 1,
                                             MPI_Comm comm = MPI_COMM_WORLD) {
    min(static_cast<Number const*>(only_in_place(in, comm)), out, n, comm);
}
template <class Void, class Number>
typename in_place_of<Void, Number>::type max(Void* in, Number* out, std::ptrdiff_t n = 1,
                                             MPI_Comm comm = MPI_COMM_WORLD) {
    max(static_cast<Number const*>(only_in_place(in, comm)), out, n, comm);
}
template <class Void, class Value>
typename in_place_of<Void, Value>::type minloc(Void* in, indexed<Value>* out, std::ptrdiff_t n = 1,
                                               MPI_Comm comm = MPI_COMM_WORLD) {
    minloc(static_cast<indexed<Value> const*>(only_in_place(in, comm)), out, n, comm);
}
template <class Void, class Value>
typename in_place_of<Void, Value>::type maxloc(Void* in, indexed<Value>* out, std::ptrdiff_t n = 1,
                                               MPI_Comm comm = MPI_COMM_WORLD) {
    maxloc(static_cast<indexed<Value> const*>(only_in_place(in, comm)), out, n, comm);
}

/// A handler of failed reductions. It gets the communicator (MPI_COMM_NULL if the call had none) and one
/// sentence that names the rank that reports, the rank at fault, and the remedy. It may throw: the exception
/// leaves the reduction. If it returns, MPI_Abort follows.
typedef void (*error_handler)(MPI_Comm comm, char const* sentence);

/// Sets the handler, and returns the previous one. A null pointer sets the default handler, which writes the
/// sentence to stderr.
///
/// Once a rank of a communicator has died, the default handler ends the job even if this rank is in no
/// reduction, because it may be waiting in MPI for the dead rank. Other handlers run in reductions only.
///
/// Threads:  not while another thread reduces. The default handler may call MPI_Abort in a thread of Herring.
error_handler handle_errors(error_handler handler);

/// Sets the time for which a reduction may wait for ranks that are alive and do not call. The default is
/// HERRING_DEFAULT_TIMEOUT, else a day. Zero or less is refused. Independently of this time, a dead rank ends
/// a reduction at once, and a rank without heartbeats after 5 s (HERRING_PEER_TIMEOUT).
///
/// Units:    seconds.
/// Threads:  not while another thread reduces.
void set_timeout(double seconds);

} // namespace mpi
} // namespace herring

#endif // HERRING_MPI_REDUCE_HPP
