// herring: workers and a server of its own.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/placement/dedicated.hpp>
#include <herring/serve.hpp>
#include <herring/transport/tcp.hpp>

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::placement::dedicated>;

void step(gradients& reduce) { // not in main: a compiler that sees one step alone leaves out the others
    for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
    reduce.wait();
}

int main() {
    herring::world world = herring::join();
    herring::layout const layout{{"weights", 4096}, {"bias", 64}};
    if (world.role() == herring::role::server) return herring::serve<gradients>(world, layout), 0;
    gradients reduce(world, layout);
    step(reduce);
}
