// sharded_optimizer: each rank keeps the optimizer's state of the weights that it owns, and updates those alone.
// SPDX-License-Identifier: Apache-2.0
#include <herring/collectives/all_gather.hpp>
#include <herring/collectives/broadcast.hpp>
#include <herring/collectives/reduce_scatter.hpp>
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

constexpr std::size_t weights = 1'000'003;

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::update::average>;

// The data of a rank has its least loss at these weights; that of all ranks at their mean.
float best_of_rank(int rank, std::size_t i) { return static_cast<float>(i % 7) + static_cast<float>(rank); }
float best_of_all(int ranks, std::size_t i) {
    return static_cast<float>(i % 7) + static_cast<float>(ranks - 1) / 2;
}

int train(herring::world& world) {
    gradients reduce(world);
    std::vector<float> all(weights, world.rank() == 0 ? 1.0f : 0.0f), gradient(weights);
    herring::broadcast(reduce, all, 0); // every rank begins with the weights of rank 0

    // [snippet step]
    herring::range const own = reduce.owned(weights, world.rank());
    std::vector<float> own_gradient(own.elements), momentum(own.elements);
    std::span<float> const own_weights = std::span(all).subspan(own.offset, own.elements);
    for (int step = 0; step < 60; ++step) {
        for (std::size_t i = 0; i < weights; ++i) gradient[i] = all[i] - best_of_rank(world.rank(), i);
        herring::reduce_scatter(reduce, gradient, own_gradient); // the average of what this rank owns
        for (std::size_t i = 0; i < own.elements; ++i) {
            momentum[i] = 0.5f * momentum[i] + own_gradient[i];
            own_weights[i] -= 0.3f * momentum[i];
        }
        herring::all_gather(reduce, own_weights, all); // in place: the own range lies where it belongs
    }
    // [end]

    float farthest = 0;
    for (std::size_t i = 0; i < weights; ++i)
        farthest = std::max(farthest, std::abs(all[i] - best_of_all(world.size(), i)));
    std::printf("rank %d keeps the momentum of %zu of %zu weights; all weights are right: %s\n", world.rank(),
                own.elements, weights, farthest < 1e-4f ? "yes" : "no");
    return farthest < 1e-4f ? 0 : 1;
}

int main() { return herring::launch(4, train, {.nodes = {"a", "a", "b", "b"}}); }
