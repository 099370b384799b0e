// herring: must not compile: all_reduce by a reducer that names no rule.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

#ifndef HERRING_TWIN
using sums = herring::reducer<double, herring::transport::inproc>;
#else
using sums = herring::reducer<double, herring::transport::inproc, herring::update::sum>;
#endif

double total(sums& reduce, std::vector<double>& x) {
#ifndef HERRING_TWIN
    return reduce.all_reduce(x[0]);
#else
    reduce.all_reduce(x);
    return reduce.all_reduce(x[0]);
#endif
}
