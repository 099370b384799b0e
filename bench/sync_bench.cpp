// herring: training by steps that exchange only when it pays: accuracy over time of several sync policies on the digits data.
// SPDX-License-Identifier: Apache-2.0
//
//   sync_bench --data examples/data/digits.csv --out FILE     one rank of the world that herring::join() finds; rank 0 writes
//     --ranks 4                                               or that many local ones, each on a node of its own
//     --seeds 10 --steps 300 --network unshaped               as many runs of each policy; `network` is a name for the lines of JSON
//     --first 1                                               the first seed
//
// Every rank has the images of a few digits only, the same ones in every run: what it learns alone is not the model. What counts is the
// mean of all replicas; it is tested every 5 steps, and that is not timed. What never exchanges is a row too: it shows what the data
// gives away for nothing.
#include "../examples/05_training/model.hpp"
#include "harness.hpp"

#include <herring/herring.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/lazy_reducer.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t batch_size = 16; // of a rank
constexpr int tested_every = 5;

template <class Sync>
using training_with =
    herring::reducer<float, herring::transport::tcp, herring::fusion::balanced_buffer<131072, 32768>,
                     herring::update::average, Sync>;

/// A run's setting.
struct settings {
    training::split const& data;
    std::vector<std::size_t> shard; ///< rows of this rank
    int steps;
    std::string network;
    std::string out;
};

/// Sums of seconds, over the steps of a run.
struct times {
    double forward_backward = 0, ready = 0, wait = 0, update = 0, settle = 0;
    double all() const { return forward_backward + ready + wait + update + settle; }
};

/// Rows of this rank: of each 10 images one that is dealt like cards, the others a contiguous part of the digits 0 to 9: three digits
/// or so, of which two are cut.
std::vector<std::size_t> shard_of(training::digits const& from, int rank, int ranks) {
    auto const mine = static_cast<std::size_t>(rank), all = static_cast<std::size_t>(ranks);
    std::vector<std::size_t> own, skewed;
    for (std::size_t row = 0; row < from.size(); ++row) // the split has shuffled them
        if (row % 10 != 0)
            skewed.push_back(row);
        else if (row / 10 % all == mine)
            own.push_back(row);
    std::stable_sort(skewed.begin(), skewed.end(),
                     [&](std::size_t a, std::size_t b) { return from.labels[a] < from.labels[b]; });
    for (std::size_t n = skewed.size() * mine / all; n < skewed.size() * (mine + 1) / all; ++n)
        own.push_back(skewed[n]);
    return own;
}

/// A warm-up of 20 steps, then half a cosine.
float rate_of(int step, int steps) {
    double const warm = std::min(1.0, (step + 1) / 20.0);
    return static_cast<float>(0.02 * warm * 0.5 * (1 + std::cos(std::numbers::pi * step / steps)));
}

/// Trains once and writes one line.
template <class Sync>
void train(herring::world& world, settings const& how, std::uint64_t seed, char const* name) {
    std::vector<std::size_t> const widths{training::pixels, 256, 256, training::classes};
    training::perceptron model(widths, seed);
    std::vector<herring::tensor_spec> tensors;
    for (std::size_t i = 0; i < model.tensors(); ++i)
        tensors.push_back({model.name(i), model.parameters(i).size()});
    training_with<Sync> reduce(world, herring::layout(tensors));
    if constexpr (requires { reduce.state(); })
        reduce.start(0, [&](std::size_t i, std::span<float> into) {
            std::copy(model.parameters(i).begin(), model.parameters(i).end(), into.begin());
        });
    if constexpr (requires { reduce.hyper().momentum; }) reduce.set({.rate = 0.7, .momentum = 0.5});

    training::batch batch(batch_size);
    training::batch const test = training::test_share(how.data.test, world.rank(), world.size());
    training::perceptron mean(widths, seed); // of all replicas
    std::vector<std::size_t> order;
    times spent;
    std::string curve;
    int exchanged = 0;
    std::uint64_t sent = 0, last_sent = reduce.counters().bytes_sent;
    double furthest = 0; // replicas from their mean, relative
    for (int step = 0; step < how.steps; ++step) {
        for (std::size_t n = 0; n < batch_size; ++n) {
            std::size_t const at = (static_cast<std::size_t>(step) * batch_size + n) % how.shard.size();
            if (at == 0 || order.empty())
                order =
                    training::permutation(how.shard.size(), seed * 7919 + static_cast<std::uint64_t>(step));
            batch.set(n, how.data.train, how.shard[order[at]]);
        }
        double mark = bench::now_us() * 1e-6;
        auto const lap = [&mark](double& into) {
            double const here = bench::now_us() * 1e-6;
            into += here - mark;
            mark = here;
        };
        model.forward(batch);
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            model.backward(i, reduce.tensor(i));
            lap(spent.forward_backward);
            reduce.ready(i);
            lap(spent.ready);
        }
        exchanged += reduce.wait() == herring::step::exchanged;
        lap(spent.wait);
        model.step(reduce, rate_of(step, how.steps));
        lap(spent.update);
        for (std::size_t i = 0; i < reduce.size(); ++i) reduce.updated(i, model.parameters(i));
        reduce.settle();
        lap(spent.settle);
        sent += reduce.counters().bytes_sent - last_sent;
        if ((step + 1) % tested_every == 0) {
            double off = 0, size = 0;
            for (std::size_t i = 0; i < mean.tensors(); ++i) {
                std::span<float> const all = mean.parameters(i);
                std::copy(model.parameters(i).begin(), model.parameters(i).end(), all.begin());
                reduce.all_reduce(all);
                for (std::size_t k = 0; k < all.size(); ++k) {
                    double const apart = static_cast<double>(model.parameters(i)[k] - all[k]);
                    off += apart * apart;
                    size += static_cast<double>(all[k]) * static_cast<double>(all[k]);
                }
            }
            float numbers[] = {static_cast<float>(mean.correct(test)),
                               static_cast<float>(std::sqrt(off / size)), static_cast<float>(spent.all())};
            reduce.all_reduce(std::span(numbers));
            furthest = std::max(furthest, static_cast<double>(numbers[1]));
            char text[96];
            std::snprintf(text, sizeof text, "%s[%d,%.6f,%.5f,%.5f,%d]", curve.empty() ? "" : ",", step + 1,
                          static_cast<double>(numbers[2]),
                          static_cast<double>(numbers[0]) * world.size() /
                              static_cast<double>(how.data.test.size()),
                          static_cast<double>(numbers[1]), exchanged);
            curve += text;
        }
        last_sent = reduce.counters().bytes_sent;
    }
    if (world.rank() == 0) {
        std::FILE* const file = how.out.empty() ? stdout : std::fopen(how.out.c_str(), "a");
        if (file == nullptr) throw std::runtime_error("cannot write " + how.out);
        std::fprintf(file,
                     "{\"suite\":\"sync\",\"network\":\"%s\",\"policy\":\"%s\",\"seed\":%llu,\"steps\":%d,"
                     "\"exchanged\":%d,\"bytes_sent\":%llu,\"compute\":%.6f,\"ready\":%.6f,\"wait\":%.6f,"
                     "\"settle\":%.6f,\"drift\":%.5f,\"curve\":[%s]}\n",
                     how.network.c_str(), name, static_cast<unsigned long long>(seed), how.steps, exchanged,
                     static_cast<unsigned long long>(sent), spent.forward_backward + spent.update,
                     spent.ready, spent.wait, spent.settle, furthest, curve.c_str());
        if (file != stdout) std::fclose(file);
    }
}

int run(herring::world& world, bench::options const& given) {
    namespace sync = herring::sync;
    training::split data(training::load_digits(given.text("data", "examples/data/digits.csv")));
    training::standardise(data);
    settings const how{.data = data,
                       .shard = shard_of(data.train, world.rank(), world.size()),
                       .steps = static_cast<int>(given.number("steps", 300)),
                       .network = given.text("network", "local"),
                       .out = given.text("out")};
    auto const first = static_cast<std::uint64_t>(given.number("first", 1));
    auto const seeds = static_cast<std::uint64_t>(given.number("seeds", 10));
    // The published window of 25 steps is made for trainings of thousands; every step is done with the data after 60 to 110.
    constexpr sync::selective_tuning picky{.window = 10};
    for (std::uint64_t seed = first; seed < first + seeds;
         ++seed) { // in turn: what else the machine does meets all of them
        train<sync::every_step>(world, how, seed, "every_step");
        train<sync::every<2>>(world, how, seed, "every<2>");
        train<sync::every<4>>(world, how, seed, "every<4>");
        train<sync::every<8>>(world, how, seed, "every<8>");
        train<sync::every<16>>(world, how, seed, "every<16>");
        train<sync::post_local<30, 8>>(world, how, seed, "post_local<30, 8>");
        train<sync::diloco<8, herring::optimizer::nesterov>>(world, how, seed, "diloco<8>");
        train<sync::selective<picky>>(world, how, seed, "selective");
        train<sync::every<1u << 30>>(world, how, seed, "never");
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const given(argc, argv);
    auto const ranks = static_cast<int>(given.number("ranks", 0));
    try {
        if (ranks > 0) {
            herring::launch_options options;
            for (int r = 0; r < ranks; ++r) options.nodes.push_back("host" + std::to_string(r));
            return herring::launch(
                ranks, [&](herring::world& world) { return run(world, given); }, options);
        }
        herring::world world = herring::join();
        return run(world, given);
    } catch (std::exception const& why) {
        std::fprintf(stderr, "%s\n", why.what());
        return 1;
    }
}
