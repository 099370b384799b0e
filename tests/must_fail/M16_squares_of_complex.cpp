// herring: must not compile: gradients of complex numbers whose squares would be observed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/complex.hpp"
#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using mine = herring::reducer<std::complex<float>, herring::transport::inproc, herring::sync::selective<>>;
#else
using mine = herring::reducer<std::complex<float>, herring::transport::inproc, herring::sync::every<8>>;
#endif

void train(herring::world& world) {
    mine lazy(world, herring::layout{{"weights", 300}});
    lazy.ready(0);
    lazy.wait();
    lazy.updated(0);
    lazy.settle();
}
