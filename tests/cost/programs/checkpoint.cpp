// herring: workers, servers that hold weights and AdamW, and checkpoints.
// SPDX-License-Identifier: Apache-2.0
#include <herring/checkpoint.hpp>
#include <herring/herring.hpp>
#include <herring/join.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/placement/dedicated.hpp>
#include <herring/serve.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

using trainer = herring::reducer<float, herring::transport::tcp, herring::placement::dedicated,
                                 herring::optimizer::adamw>;

void steps(trainer& train) {
    for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
    train.wait();
    train.save("checkpoint", {});
    train.load("checkpoint");
}

int main() {
    herring::world world = herring::join();
    herring::layout const layout{{"weights", 4096}, {"bias", 64}};
    if (world.role() == herring::role::server) return herring::serve<trainer>(world, layout), 0;
    trainer train(world, layout);
    train.start(0, [](std::size_t, std::span<float>) {});
    steps(train);
}
