// herring: must not compile: what is const, in place.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

using sums = herring::reducer<double, herring::transport::inproc, herring::update::sum>;

void total(sums& reduce, std::vector<double> const& x, std::vector<double>& y) {
#ifndef HERRING_TWIN
    reduce.all_reduce(x);
    (void)y;
#else
    reduce.all_reduce(x, y);
#endif
}
