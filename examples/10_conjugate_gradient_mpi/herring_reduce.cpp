// conjugate_gradient: the one file that is compiled as C++20 and without -ffast-math.
// SPDX-License-Identifier: Apache-2.0
#include <herring/mpi/src.hpp>
