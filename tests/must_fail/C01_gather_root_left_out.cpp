// herring: must not compile: a gather whose root is left out.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/gather.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

void collect(weights& reduce, std::vector<float> const& mine, std::vector<float>& all) {
#ifndef HERRING_TWIN
    herring::gather(reduce, mine, all);
#else
    herring::gather(reduce, mine, all, 0);
#endif
}
