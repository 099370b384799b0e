// herring: must not compile: reduce_scatter by a reducer that names no rule.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::transport::inproc>;
#else
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::average>;
#endif

void share(gradients& reduce, std::vector<float> const& all, std::vector<float>& mine) {
    herring::reduce_scatter(reduce, all, mine);
}
