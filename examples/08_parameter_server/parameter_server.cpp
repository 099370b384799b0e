// parameter server: servers hold weights and AdamW; one is killed half way, and other ranks go on from the checkpoint.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: parameter_server digits.csv output-folder [epochs]
#include "../05_training/data.hpp"
#include "../05_training/model.hpp"
#include "curve.hpp"

#include <herring/checkpoint.hpp>
#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/placement/dedicated.hpp>
#include <herring/serve.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

using namespace herring::literals;
using herring::role;

using trainer = herring::reducer<float, herring::transport::tcp, //
                                 herring::placement::dedicated,  // servers hold the shards,
                                 herring::optimizer::adamw,      // and update the weights
                                 herring::fusion::balanced_buffer<128_KiB, 32_KiB>, //
                                 herring::update::average>;

namespace {

constexpr std::size_t batch_size = 256; // of all workers together
constexpr double accuracy_to_reach = 0.97;

struct job {
    training::split data;
    std::string folder; ///< of the checkpoint and of what is drawn
    std::size_t epochs;
    std::optional<std::size_t> killed_in; ///< in the middle of this epoch the last rank, a server, is killed
};

/// Two epochs of warm-up, then half a cosine.
double learning_rate(double epoch, double epochs) {
    return 3e-3 * std::min(1.0, epoch / 2) * 0.5 * (1 + std::cos(std::numbers::pi * epoch / epochs));
}

void train(herring::world& world, job const& what) {
    training::perceptron model({training::pixels, 256, 256, training::classes}, 1);
    std::vector<herring::tensor_spec> tensors; // in the order in which backward finishes them
    for (std::size_t i = 0; i < model.tensors(); ++i)
        tensors.push_back({model.name(i), model.parameters(i).size()});
    herring::layout const layout(tensors);

    auto const own_process = getpid();
    auto const processes = world.all_gather(std::as_bytes(std::span(&own_process, 1)));

    if (world.role() == role::server) {
        herring::serve<trainer>(world, layout);
        return;
    }
    trainer train(world, layout);

    // The epoch to begin with lies in the checkpoint, where there is one; else the weights are worker 0's.
    std::size_t epoch = 0;
    std::string const checkpoint = what.folder + "/checkpoint";
    if (std::filesystem::is_empty(checkpoint)) {
        train.start(0, [&](std::size_t i, std::span<float> weights) {
            std::ranges::copy(model.parameters(i), weights.begin());
        });
    } else {
        std::memcpy(&epoch, train.load(checkpoint).data(), sizeof epoch);
        if (world.worker() == 0) std::printf("from the checkpoint behind epoch %zu:\n", epoch);
    }
    for (std::size_t i = 0; i < train.size(); ++i) model.use(i, train.weights(i));

    training::sampler samples(what.data.train, world.worker(), world.workers(), batch_size);
    training::batch const test = training::test_share(what.data.test, world.worker(), world.workers());
    training::batch batch(samples.batch_size());
    auto const workers = static_cast<double>(world.workers());
    for (; epoch < what.epochs; ++epoch) {
        samples.begin(epoch);
        double loss = 0;
        for (std::size_t step = 0; step < samples.steps(); ++step) {
            double const done = static_cast<double>(epoch) +
                                static_cast<double>(step + 1) / static_cast<double>(samples.steps());
            auto hyper = train.hyper();
            hyper.rate = learning_rate(done, static_cast<double>(what.epochs));
            train.set(hyper);

            samples.fill(step, batch);
            loss += static_cast<double>(model.forward(batch));
            for (std::size_t i = 0; i < train.size(); ++i) {
                model.backward(i, train.tensor(i));
                train.ready(
                    i); // the gradient is complete, and this worker does not read weights(i) before wait() returns
            }
            train.wait(); // weights(i) are updated

            if (what.killed_in == epoch && step == samples.steps() / 2 && world.worker() == 0) {
                pid_t victim = 0;
                std::memcpy(&victim, processes[processes.size() - 1].data(), sizeof victim);
                kill(victim, SIGKILL);
            }
        }
        std::array means{static_cast<float>(loss / static_cast<double>(samples.steps())),
                         static_cast<float>(model.correct(test))};
        train.all_reduce(std::span<float>(means));
        parameter_server::point const now{epoch + 1, static_cast<double>(means[0]),
                                          static_cast<double>(means[1]) * workers /
                                              static_cast<double>(what.data.test.size())};
        std::size_t const next = epoch + 1;
        train.save(checkpoint, std::as_bytes(std::span(&next, 1)));
        if (world.worker() != 0) continue;
        parameter_server::append(what.folder + "/curve.csv", world.workers(), world.servers(), now);
        std::printf("  epoch %2zu   loss %.4f   accuracy %6.2f %%\n", now.epoch, now.loss,
                    now.accuracy * 100);
        std::fflush(stdout);
    }
}

/// `workers` ranks, each on a node of its own, and behind them `servers` ranks. Returns the worst status.
int run(int workers, int servers, job const& what) {
    herring::launch_options options;
    for (int rank = 0; rank < workers + servers; ++rank) {
        options.roles.push_back(rank < workers ? role::worker : role::server);
        options.nodes.push_back("machine" + std::to_string(rank));
    }
    std::printf("%d workers and %d server%s\n", workers, servers, servers == 1 ? "" : "s");
    std::fflush(stdout);
    return herring::launch(
        workers + servers, [&](herring::world& world) { train(world, what); }, options);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3 || argc > 4) {
        std::fprintf(stderr, "usage: %s digits.csv output-folder [epochs]\n", argv[0]);
        return 2;
    }
    try {
        long const epochs = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 16;
        job what{training::split(training::load_digits(argv[1])),
                 std::string(argv[2]) + "/parameter_server",
                 static_cast<std::size_t>(std::clamp(epochs, 2l, 1000l)),
                 {}};
        training::standardise(what.data);
        std::filesystem::remove_all(what.folder);
        std::filesystem::create_directories(what.folder + "/checkpoint");

        what.killed_in = what.epochs / 2;
        if (run(2, 2, what) == 0) return EXIT_FAILURE; // nobody noticed
        std::printf("a server was killed in epoch %zu; the others said so, and ended\n\n",
                    *what.killed_in + 1);
        what.killed_in.reset();
        if (run(4, 1, what) != 0) return EXIT_FAILURE;

        auto const curves = parameter_server::read(what.folder + "/curve.csv");
        parameter_server::draw(what.folder + "/curve.svg", curves);
        double const accuracy = curves.back().points.back().accuracy;
        std::printf("\ntest accuracy: %.2f %%, %s the %.0f %% to reach; the curve: %s/curve.svg\n",
                    accuracy * 100, accuracy >= accuracy_to_reach ? "above" : "BELOW",
                    accuracy_to_reach * 100, what.folder.c_str());
        return accuracy >= accuracy_to_reach ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return EXIT_FAILURE;
    }
}
