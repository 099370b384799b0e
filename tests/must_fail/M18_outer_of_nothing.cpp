// herring: must not compile: an outer optimizer that is none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using mine =
    herring::reducer<float, herring::transport::inproc, herring::sync::diloco<8, herring::optimizer::none>>;
#else
using mine = herring::reducer<float, herring::transport::inproc,
                              herring::sync::diloco<8, herring::optimizer::nesterov>>;
#endif

void train(herring::world& world) {
    mine lazy(world, herring::layout{{"weights", 300}});
    lazy.ready(0);
    lazy.wait();
    lazy.updated(0);
    lazy.settle();
}
