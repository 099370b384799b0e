// herring: must not compile: servers of their own, and a sync policy that skips steps.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using lazy = herring::reducer<float, herring::transport::inproc, herring::placement::dedicated,
                              herring::sync::every<8>>;
#else
using lazy = herring::reducer<float, herring::transport::inproc, herring::sync::every<8>>;
#endif

void run(herring::world& world, herring::layout const& tensors) {
    lazy reduce(world, tensors);
    reduce.ready(0);
    reduce.wait();
}
