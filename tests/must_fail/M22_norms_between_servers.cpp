// herring: must not compile: servers of their own, and an optimizer that has to know the norm of all gradients.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

using clipped = herring::optimizer::clipped<herring::optimizer::adamw>;
#ifndef HERRING_TWIN
using trainer = herring::reducer<float, herring::transport::inproc, herring::placement::dedicated, clipped>;
#else
using trainer = herring::reducer<float, herring::transport::inproc, clipped>;
#endif

void run(herring::world& world, herring::layout const& tensors) {
    trainer train(world, tensors);
    train.ready(0);
    train.wait();
}
