// herring: must not compile: weights that are updated where gradients are summed, by a policy that skips steps.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using mine =
    herring::reducer<float, herring::transport::inproc, herring::optimizer::adamw, herring::sync::every<8>>;
#else
using mine = herring::reducer<float, herring::transport::inproc, herring::sync::every<8>>;
#endif

void train(herring::world& world) {
    mine lazy(world, herring::layout{{"weights", 300}});
    lazy.ready(0);
    lazy.wait();
    lazy.updated(0);
    lazy.settle();
}
