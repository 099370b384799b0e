// herring: must not compile: a timeout that is a plain number; the status is used.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <chrono>
#include <vector>

using sums = herring::reducer<float, herring::transport::inproc, herring::update::sum>;

void share(sums& reduce, std::vector<float> const& all, std::vector<float>& mine) {
#ifndef HERRING_TWIN
    herring::reduce_scatter(reduce, all, mine, 1000).value();
#else
    herring::reduce_scatter(reduce, all, mine, std::chrono::milliseconds(1000)).value();
#endif
}
