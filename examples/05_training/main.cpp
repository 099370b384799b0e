// training: trains a multi-layer perceptron on handwritten digits, its gradients averaged by Herring.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: training digits.csv output-folder [epochs]
// One rank of the world that herring::join() finds: see ../demo, which starts four on one machine.

#include "data.hpp"
#include "model.hpp"
#include "plots.hpp"
#include "timeline.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/transport/tcp.hpp>
#ifdef TRAINING_WITH_TIMELINE
#include <herring/trace/perfetto.hpp>
#include <herring/trace/timeline.hpp>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numbers>
#include <span>
#include <string>
#include <vector>

using namespace herring::literals;

namespace training {
#ifdef TRAINING_WITH_TIMELINE // examples/demo --timeline
/// Herring's own: a ring of the newest events, with the engine's.
struct trace : herring::trace::timeline<1 << 16> {
    void take(std::uint32_t, std::uint32_t, std::vector<interval>&) const noexcept {}
};
#else
using trace = bucket_trace; // this program's own: timeline.hpp
#endif
} // namespace training

using averaged_gradients =
    herring::reducer<float,
                     herring::transport::tcp,                           // between nodes
                     herring::intra_node::shared_memory,                // between the ranks of a node
                     herring::fusion::balanced_buffer<128_KiB, 32_KiB>, // leaves when it holds 128 KiB
                     herring::progress::thread,                         // travels while backward goes on
                     herring::update::average, // of gradients, and of what all_reduce gets
                     training::trace>;         // for a picture of a step

namespace {

constexpr std::size_t batch_size = 256; // of all ranks together
constexpr double accuracy_to_reach = 0.97;

struct outcome {
    std::vector<training::epoch_result> epochs;
    std::vector<training::interval> last_epoch; ///< what this rank did, and when
};

/// Two epochs of warm-up, then half a cosine.
float learning_rate(std::size_t step, std::size_t steps_an_epoch, std::size_t steps) {
    double const warm_up =
        std::min(1.0, static_cast<double>(step + 1) / (2.0 * static_cast<double>(steps_an_epoch)));
    double const part = static_cast<double>(step) / static_cast<double>(steps);
    return static_cast<float>(0.1 * warm_up * 0.5 * (1.0 + std::cos(std::numbers::pi * part)));
}

outcome train(herring::world const& world, averaged_gradients& reduce, training::perceptron& model,
              training::sampler& samples, training::batch const& test, std::size_t test_size,
              std::size_t epochs) {
    using training::activity, training::now_ns;
    auto const rank = static_cast<std::uint32_t>(world.rank());
    auto const ranks = static_cast<double>(world.size());
    outcome result;
    std::vector<training::interval>& bars = result.last_epoch;
    training::batch batch(samples.batch_size());

    if (rank == 0) std::printf("epoch     loss   accuracy   samples/s   exposed communication\n");
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        samples.begin(epoch);
        bars.clear();
        double loss = 0, waited = 0, worked = 0;
        std::int64_t const epoch_begin = now_ns();
        for (std::uint32_t step = 0; step < samples.steps(); ++step) {
            std::int64_t const begin = now_ns();
            samples.fill(step, batch);
            loss += static_cast<double>(model.forward(batch));
            std::int64_t const forward_end = now_ns();
            bars.push_back({step, activity::forward, 0, rank, begin, forward_end});

            std::int64_t layer_begin = forward_end;
            for (std::size_t i = 0; i < reduce.size(); ++i) {
                model.backward(i, reduce.tensor(i)); // written in place
                reduce.ready(i);                     // its bucket leaves as soon as it is full
                if (i + 1 == reduce.size() || model.layer_of(i + 1) != model.layer_of(i)) {
                    auto const layer = static_cast<std::uint32_t>(model.layer_of(i));
                    std::int64_t const layer_end = now_ns();
                    bars.push_back({step, activity::backward, layer, rank, layer_begin, layer_end});
                    layer_begin = layer_end;
                }
            }
            reduce.wait(); // every rank holds the same averaged gradients
            std::int64_t const wait_end = now_ns();
            model.step(reduce, learning_rate(epoch * samples.steps() + step, samples.steps(),
                                             epochs * samples.steps()));
            std::int64_t const end = now_ns();

            bars.push_back({step, activity::waiting, 0, rank, layer_begin, wait_end});
            bars.push_back({step, activity::update, 0, rank, wait_end, end});
            reduce.trace().take(step, rank, bars);
            waited += static_cast<double>(wait_end - layer_begin) * 1e-9;
            worked += static_cast<double>(end - begin) * 1e-9;
        }
        double const seconds = static_cast<double>(now_ns() - epoch_begin) * 1e-9;

        // averages over the ranks, of five numbers that each has
        float means[] = {static_cast<float>(loss / static_cast<double>(samples.steps())),
                         static_cast<float>(model.correct(test)), static_cast<float>(waited),
                         static_cast<float>(worked), static_cast<float>(seconds)};
        reduce.all_reduce(std::span(means));
        training::epoch_result const now{
            static_cast<double>(means[0]),
            static_cast<double>(means[1]) * ranks / static_cast<double>(test_size),
            static_cast<double>(samples.steps() * batch_size) / static_cast<double>(means[4]),
            static_cast<double>(means[2] / means[3])};
        result.epochs.push_back(now);
        if (rank == 0) {
            std::printf("%5zu   %6.4f   %6.2f %%   %9.0f   %6.1f %% of a step\n", epoch + 1, now.loss,
                        now.accuracy * 100, now.samples_per_second, now.exposed * 100);
            std::fflush(stdout);
        }
    }
    return result;
}

/// FNV-1a, 64 bits, of all parameters.
std::uint64_t hash(training::perceptron const& model) {
    std::uint64_t value = 0xcbf29ce484222325u;
    for (std::size_t i = 0; i < model.tensors(); ++i)
        for (std::byte const byte : std::as_bytes(model.parameters(i)))
            value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
    return value;
}

/// Prints every rank's hash and tells whether they are all the same.
bool same_on_every_rank(herring::world& world, std::uint64_t mine) {
    bool same = true;
    auto const all = world.all_gather(std::as_bytes(std::span(&mine, 1)));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, all[rank].data(), sizeof theirs);
        same = same && theirs == mine;
        if (world.rank() == 0)
            std::printf("  rank %zu on node %d: %016llx\n", rank,
                        world.topology().node(static_cast<int>(rank)),
                        static_cast<unsigned long long>(theirs));
    }
    return same;
}

int run(std::string const& data_file, std::string const& folder, std::size_t epochs) {
    training::split data(training::load_digits(data_file));
    training::standardise(data);
    training::perceptron model({training::pixels, 512, 512, 512, 512, training::classes}, 1);

    std::vector<herring::tensor_spec> tensors; // in the order in which backward finishes them
    for (std::size_t i = 0; i < model.tensors(); ++i)
        tensors.push_back({model.name(i), model.parameters(i).size()});
    herring::layout const layout(tensors);

    herring::world world = herring::join();
    averaged_gradients reduce(world, layout);

    training::sampler samples(data.train, world.rank(), world.size(), batch_size);
    training::batch const test = training::test_share(data.test, world.rank(), world.size());
    std::string const setting = std::to_string(world.size()) +
                                (world.size() == 1 ? " rank on " : " ranks on ") +
                                std::to_string(world.nodes()) + (world.nodes() == 1 ? " node" : " nodes");
    bool const first = world.rank() == 0;
    if (first)
        std::printf("%s; %zu parameters in %zu tensors, %zu buckets; %zu images to train on, %zu to test\n\n",
                    setting.c_str(), layout.elements(), layout.size(), reduce.plan().buckets.size(),
                    data.train.size(), data.test.size());

    outcome const result = train(world, reduce, model, samples, test, data.test.size(), epochs);

    if (first) std::printf("\nhash of the parameters after %zu steps:\n", epochs * samples.steps());
    bool const same = same_on_every_rank(world, hash(model));
    double const accuracy = result.epochs.back().accuracy;
    bool const good = accuracy >= accuracy_to_reach;
    auto const recorded = world.all_gather(std::as_bytes(std::span(result.last_epoch)));
    if (first) {
        std::printf("  %s\n", same ? "equal on every rank" : "NOT equal on every rank");
        std::printf("test accuracy: %.2f %%, %s the %.0f %% to reach\n", accuracy * 100,
                    good ? "above" : "BELOW", accuracy_to_reach * 100);
        training::draw_training(folder + "/training.svg", result.epochs, accuracy_to_reach,
                                "multi-layer perceptron 64-512-512-512-512-10 on the digits data, " +
                                    setting + ", batches of " + std::to_string(batch_size) + " images");
        std::printf("loss and accuracy: %s/training.svg\n", folder.c_str());
    }
#ifdef TRAINING_WITH_TIMELINE
    // Rank 0 writes what all ranks did in the last steps; each has numbers of its own.
    herring::write_perfetto(folder + "/timeline.pftrace", reduce.trace());
    if (first)
        std::printf("timeline of all ranks: %s/timeline.pftrace (open it at https://ui.perfetto.dev)\n\n%s",
                    folder.c_str(), reduce.trace().report().text().c_str());
#else
    if (first) {
        training::step_record const step = training::median_step(recorded);
        training::draw_step(folder + "/step.svg", step, world.topology().node_of,
                            "step " + std::to_string(step.step + 1) + " of epoch " + std::to_string(epochs) +
                                ", the one of median length; " + setting +
                                ", TCP between nodes, shared memory within");
        std::printf("one step's timeline: %s/step.svg\n", folder.c_str());
    }
#endif
    return same && good ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3 || argc > 4) {
        std::fprintf(stderr, "usage: %s digits.csv output-folder [epochs]\n", argv[0]);
        return 2;
    }
    try {
        long const epochs = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 20;
        return run(argv[1], argv[2], static_cast<std::size_t>(std::clamp(epochs, 1l, 10'000l)));
    } catch (std::exception const& problem) { // herring::error says which rank, what, and what to do
        std::fprintf(stderr, "%s\n", problem.what());
        return EXIT_FAILURE;
    }
}
