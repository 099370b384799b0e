// herring: must not compile: a pointer and a count, as MPI_Allreduce has them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <span>

using sums = herring::reducer<double, herring::transport::inproc, herring::update::sum>;

void total(sums& reduce, double& x) {
#ifndef HERRING_TWIN
    reduce.all_reduce(&x, 1);
#else
    reduce.all_reduce(std::span(&x, 1));
#endif
}
