// herring: must not compile: weights of replicas that would be summed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using mine =
    herring::reducer<float, herring::transport::inproc, herring::update::sum, herring::sync::every<8>>;
#else
using mine =
    herring::reducer<float, herring::transport::inproc, herring::update::average, herring::sync::every<8>>;
#endif

void train(herring::world& world) {
    mine lazy(world, herring::layout{{"weights", 300}});
    lazy.ready(0);
    lazy.wait();
    lazy.updated(0);
    lazy.settle();
}
