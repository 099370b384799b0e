// herring: the one file of an MPI program that is C++20.
// SPDX-License-Identifier: Apache-2.0
#include <herring/mpi/src.hpp>
