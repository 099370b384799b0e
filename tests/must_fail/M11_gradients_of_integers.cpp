// herring: must not compile: an optimizer of integers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

namespace optimizer = herring::optimizer;
using herring::update::sum;

#ifndef HERRING_TWIN
using gradients = herring::reducer<int, herring::transport::inproc, sum, optimizer::adamw>;
#else
using gradients = herring::reducer<herring::bfloat16, herring::transport::inproc, sum, optimizer::adamw>;
#endif

void train(herring::world& world) {
    gradients reduce(world, herring::layout{{"a", 100}});
    reduce.start(0, [](std::size_t, auto weights) {
        for (auto& weight : weights) weight = {};
    });
    reduce.set(reduce.hyper());
    reduce.set_loss_scale(1024);
    reduce.ready(0);
    reduce.wait();
    (void)reduce.weights(0);
}
