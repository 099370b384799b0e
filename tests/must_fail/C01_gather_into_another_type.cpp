// herring: must not compile: an all_gather into a vector of another type.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_gather.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

#ifndef HERRING_TWIN
using numbers = std::vector<double>;
#else
using numbers = std::vector<float>;
#endif
void gather(weights& reduce, std::vector<float> const& mine, numbers& all) {
    herring::all_gather(reduce, mine, all);
}
