// herring: must not compile: a pack without a transport, in a program that uses all that a reducer has: one
// error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <chrono>
#include <cstdio>
#include <vector>

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::update::sum>;
#else
using gradients = herring::reducer<float, herring::update::sum, herring::transport::inproc>;
#endif

void train(herring::world& world) {
    gradients reduce{world, herring::layout{{"weight", 100}, {"bias", 10}}};
    std::vector<float> mine(10);
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (float& x : reduce.tensor(i)) x = 1.0f;
        if (i == 0)
            reduce.ready(i);
        else
            reduce.ready(i, mine);
        reduce.poll();
    }
    reduce.wait();
    if (herring::status const ended = reduce.wait(herring::clock::now() + std::chrono::seconds(1)); !ended)
        ended.value();
    reduce.all_reduce(mine);
    std::printf("%zu buckets, %zu bytes\n", reduce.plan().buckets.size(),
                static_cast<std::size_t>(reduce.counters().bytes_sent));
    reduce.trace()(herring::trace_event::wait_begin, 0);
    (void)reduce.transport();
    gradients alone(world);
    gradients& other = alone;
    other.all_reduce(mine);
}
