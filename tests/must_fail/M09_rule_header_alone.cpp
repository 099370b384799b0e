// herring: must not compile: a rule of deviations without the header of its call.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/moments.hpp"

#ifdef HERRING_TWIN
#include "herring/collectives/all_moments.hpp"
#endif

#include <vector>

using forces = herring::reducer<float, herring::transport::inproc, herring::update::moments>;

void mean_of(herring::world& world, std::vector<float>& mine) {
    forces reduce(world, herring::layout{{"forces", 300}});
    reduce.all_reduce(mine);
    reduce.ready(0);
    reduce.wait();
}
