// herring: a reducer that exchanges every fourth step.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/lazy_reducer.hpp>
#include <herring/sync/periodic.hpp>
#include <herring/transport/tcp.hpp>

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::sync::every<4>>;

void step(gradients& reduce) { // not in main: a compiler that sees one step alone leaves out the others
    for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
    reduce.wait();
    reduce.settle();
}

int main() {
    herring::world world = herring::join();
    gradients reduce{world, herring::layout{{"weights", 4096}, {"bias", 64}}};
    step(reduce);
}
