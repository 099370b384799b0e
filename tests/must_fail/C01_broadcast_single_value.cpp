// herring: must not compile: a single value, as all_reduce takes it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/broadcast.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <span>

using weights = herring::reducer<float, herring::transport::inproc>;

void send(weights& reduce, float x) {
#ifndef HERRING_TWIN
    herring::broadcast(reduce, x, 0);
#else
    herring::broadcast(reduce, std::span(&x, 1), 0);
#endif
}
