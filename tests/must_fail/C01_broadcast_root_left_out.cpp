// herring: must not compile: a broadcast whose root is left out.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/broadcast.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

void send(weights& reduce, std::vector<float>& x) {
#ifndef HERRING_TWIN
    herring::broadcast(reduce, x);
#else
    herring::broadcast(reduce, x, 0);
#endif
}
