// hello: four processes average two tensors; the smallest program there is.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <cstdio>

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory>;

void average(herring::world& world) {
    gradients reduce(world, {{"bias", 3}, {"weight", 1000}});
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (float& x : reduce.tensor(i)) x = static_cast<float>(world.rank()); // written in place
        reduce.ready(i); // leaves when its bucket is full
    }
    reduce.wait(); // every rank holds the average, the same bits
    double const result = reduce.tensor(1)[999];
    std::printf("rank %d of %d: %.1f\n", world.rank(), world.size(), result);
}

int main() {
    // Four processes as if on two machines: a and a share memory, b and b do, and TCP is in between.
    return herring::launch(4, average, {.nodes = {"a", "a", "b", "b"}});
}
