// herring: the file whose cost is counted: the usual reducer, over TCP and shared memory, with its usual
// calls. SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/transport/tcp.hpp>

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory>;

void step(gradients& reduce) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (float& x : reduce.tensor(i)) x = 1;
        reduce.ready(i);
    }
    reduce.wait();
}

int main() {
    herring::world world = herring::join();
    gradients reduce{world, herring::layout{{"weights", 4096}, {"bias", 64}}};
    step(reduce);
}

#ifdef HERRING_COST_FURTHER // a second element type and rule: what each further one costs
using totals = herring::reducer<double, herring::transport::tcp, herring::intra_node::shared_memory,
                                herring::update::sum>;

void step(totals& reduce) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (double& x : reduce.tensor(i)) x = 1;
        reduce.ready(i);
    }
    reduce.wait();
}
void further(herring::world& world) {
    totals reduce{world, herring::layout{{"weights", 4096}, {"bias", 64}}};
    step(reduce);
}
#endif
