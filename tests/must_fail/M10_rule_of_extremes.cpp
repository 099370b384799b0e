// herring: must not compile: an optimizer behind a maximum.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

namespace optimizer = herring::optimizer;

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::max, optimizer::sgd>;
#else
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::sum, optimizer::sgd>;
#endif

void train(herring::world& world) {
    gradients reduce(world, herring::layout{{"a", 100}});
    reduce.start(0, [](std::size_t, auto weights) {
        for (auto& weight : weights) weight = 0;
    });
    reduce.set(reduce.hyper());
    reduce.ready(0);
    reduce.wait();
    (void)reduce.weights(0);
}
