// herring: must not compile: to serve a reducer whose workers do all of the work.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::transport::inproc>;
#else
using gradients = herring::reducer<float, herring::transport::inproc, herring::placement::dedicated>;
#endif

void serve(herring::world& world, herring::layout const& tensors) {
    herring::serve<gradients>(world, tensors);
}
