// herring: must not compile: a vector of floats to a reducer of doubles.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

using sums = herring::reducer<double, herring::transport::inproc, herring::update::sum>;

#ifndef HERRING_TWIN
using numbers = std::vector<float>;
#else
using numbers = std::vector<double>;
#endif
void total(sums& reduce, numbers& x) { reduce.all_reduce(x); }
