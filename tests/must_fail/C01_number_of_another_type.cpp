// herring: must not compile: a float to a reducer of doubles; its result is used.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <cstdio>

using sums = herring::reducer<double, herring::transport::inproc, herring::update::sum>;

void total(sums& reduce, float x) {
#ifndef HERRING_TWIN
    double const y = reduce.all_reduce(x);
#else
    double const y = reduce.all_reduce(static_cast<double>(x));
#endif
    std::printf("%f\n", y);
}
