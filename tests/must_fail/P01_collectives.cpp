// herring: must not compile: a reducer without a transport that is used for collectives: one error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <chrono>
#include <vector>

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::update::sum>;
#else
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::sum>;
#endif

void share(herring::world& world) {
    using std::chrono::seconds;
    gradients reduce(world);
    std::vector<float> all(1000), mine(reduce.owned(1000).elements);
    herring::range const theirs = reduce.owned(1000, 0);
    all[theirs.offset] = 1;
    herring::broadcast(reduce, all, 0);
    herring::reduce_scatter(reduce, all, mine);
    herring::all_gather(reduce, mine, all);
    if (!herring::broadcast(reduce, all, 0, seconds(1))) return;
    if (!herring::reduce_scatter(reduce, all, mine, seconds(1)).ok()) return;
    herring::status const ended = herring::all_gather(reduce, mine, all, herring::clock::now() + seconds(1));
    ended.value();
}
