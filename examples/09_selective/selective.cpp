// selective: one loop, and four policies that say which of its steps exchange.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/lazy_reducer.hpp>
#include <herring/optimizer/nesterov.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

using herring::sync::selective_tuning;
template <class Sync>
using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::fusion::per_tensor, Sync, herring::update::average>;

constexpr int steps = 120;
constexpr std::size_t sizes[] = {1'000, 60'000};

// The data of a rank has its least loss at these weights, that of all ranks at their mean.
float best_of_rank(int rank, std::size_t i) {
    return static_cast<float>(i % 7) + 0.1f * static_cast<float>(rank);
}
// What one batch differs by from all the data: from -1 to 1.
float noise(int rank, int step, std::size_t i) {
    std::uint64_t x = (static_cast<std::uint64_t>(rank * steps + step) << 32 | i) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return static_cast<float>(x >> 40) / (1 << 23) - 1;
}

template <class Sync> bool train(herring::world& world, char const* name) {
    herring::layout const layout{{"bias", sizes[0]}, {"weight", sizes[1]}};
    gradients<Sync> reduce(world, layout);
    std::vector<float> weights[] = {std::vector<float>(sizes[0]), std::vector<float>(sizes[1])};
    if constexpr (requires { reduce.state(); }) // replicas of their own begin with the same weights
        reduce.start(0, [](std::size_t, std::span<float> all) { std::fill(all.begin(), all.end(), 0.0f); });
    if constexpr (requires { reduce.hyper().momentum; }) reduce.set({.rate = 0.7, .momentum = 0.5});
    std::uint64_t const sent = reduce.counters().bytes_sent;

    // [snippet loop]
    int exchanged = 0;
    for (int step = 0; step < steps; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            std::span<float> const gradient = reduce.tensor(i);
            for (std::size_t k = 0; k < gradient.size(); ++k)
                gradient[k] = weights[i][k] - best_of_rank(world.rank(), k) + noise(world.rank(), step, k);
            reduce.ready(i);
        }
        if (reduce.wait() == herring::step::exchanged) ++exchanged; // this step's, or what settle() will do
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            std::span<float const> const gradient = reduce.tensor(i); // of all ranks, or this rank's own
            for (std::size_t k = 0; k < gradient.size(); ++k) weights[i][k] -= 0.1f * gradient[k];
            reduce.updated(i, weights[i]);
        }
        reduce.settle(); // where the step is due, the weights are the mean of all ranks'
    }
    // [end]

    double const megabytes = static_cast<double>(reduce.counters().bytes_sent - sent) / 1e6;
    double squares = 0, drift = 0;
    for (std::vector<float>& own : weights) {
        std::vector<float> const before = own;
        reduce.all_reduce(own); // the model is the mean of its replicas
        for (std::size_t k = 0; k < own.size(); ++k) {
            double const best = static_cast<double>(best_of_rank(0, k)) + 0.05 * (world.size() - 1);
            squares += (static_cast<double>(own[k]) - best) * (static_cast<double>(own[k]) - best);
            drift = std::max(drift, std::abs(static_cast<double>(own[k] - before[k])));
        }
    }
    double const off = std::sqrt(squares / (sizes[0] + sizes[1]));
    if (world.rank() == 0)
        std::printf("%-12s %4d of %d steps %8.1f MB sent by rank 0   off by %.3f   this replica is %.3f from "
                    "the mean\n",
                    name, exchanged, steps, megabytes, off, drift);
    return off < 0.2;
}

int run(herring::world& world) {
    bool good = train<herring::sync::every_step>(world, "every_step");
    good &= train<herring::sync::every<8>>(world, "every<8>");
    good &= train<herring::sync::selective<selective_tuning{.threshold = 0.02f, .window = 10}>>(world,
                                                                                                "selective");
    good &= train<herring::sync::diloco<10, herring::optimizer::nesterov>>(world, "diloco");
    return good ? 0 : 1;
}

int main() { return herring::launch(4, run, {.nodes = {"a", "a", "b", "b"}}); }
