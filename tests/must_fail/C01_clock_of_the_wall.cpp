// herring: must not compile: a deadline by another clock.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <chrono>
#include <vector>

using sums = herring::reducer<double, herring::transport::inproc, herring::update::sum>;

void total(sums& reduce, std::vector<double>& x) {
    using std::chrono::seconds;
#ifndef HERRING_TWIN
    reduce.all_reduce(x, std::chrono::system_clock::now() + seconds(1)).value();
#else
    reduce.all_reduce(x, herring::clock::now() + seconds(1)).value();
#endif
}
