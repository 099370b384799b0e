// herring: must not compile: a policy that skips steps, without the reducer of such packs.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/sync/periodic.hpp"
#include "herring/transport/inproc.hpp"

#ifdef HERRING_TWIN
#include "herring/lazy_reducer.hpp"
#endif

using mine = herring::reducer<float, herring::transport::inproc, herring::sync::every<8>>;

void train(herring::world& world) {
    mine lazy(world, herring::layout{{"weights", 300}});
    lazy.ready(0);
    lazy.wait();
    lazy.updated(0);
    lazy.settle();
}
