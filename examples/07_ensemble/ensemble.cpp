// ensemble: five small networks answer together, each a process; one is killed and another stopped under way.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: ensemble digits.csv [rounds]    (5 rounds over the 360 test images a phase if not given)
//
// The first process only starts and ends the others, as an init system would: it has one thread, so that it can fork at
// any time. The frontend asks it, by a letter through a pipe, to kill, stop, continue and restart members.

#include "../05_training/data.hpp"
#include "../05_training/model.hpp"
#include "report.hpp"

#include <herring/ensemble.hpp>
#include <herring/ensemble/combine.hpp>
#include <herring/ensemble/outputs.hpp>
#include <herring/ensemble/quorum.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

// The mean of five distributions, if at least three are there in time; and how far the members are apart.
using voters =
    herring::ensemble<float, herring::combine::mean<herring::space::probability>,
                      herring::outputs::of<herring::outputs::disagreement>, herring::quorum::at_least<3>>;

constexpr std::array<char const*, 5> names{"ada", "ben", "cleo", "dan", "eve"};
constexpr std::size_t killed = 4, stopped = 2;
constexpr auto deadline = 200ms;

/// A network trained on a sample, drawn with repetition, of the images.
training::perceptron train(training::digits const& images, std::uint64_t seed) {
    training::random draw(seed);
    training::digits sample;
    for (std::size_t i = 0; i < images.size(); ++i) {
        std::size_t const row = draw.below(images.size());
        sample.images.push_back(images.images[row]);
        sample.labels.push_back(images.labels[row]);
    }
    training::perceptron model({training::pixels, 16, training::classes}, seed);
    struct gradients {
        std::vector<std::vector<float>> memory;
        std::span<float> tensor(std::size_t i) noexcept { return memory[i]; }
    } gradient;
    for (std::size_t i = 0; i < model.tensors(); ++i)
        gradient.memory.emplace_back(model.parameters(i).size());

    constexpr std::size_t epochs = 15, batch_size = 32;
    training::sampler batches(sample, 0, 1, batch_size);
    training::batch batch(batch_size);
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        batches.begin(epoch);
        for (std::size_t step = 0; step < batches.steps(); ++step) {
            batches.fill(step, batch);
            model.forward(batch);
            for (std::size_t i = 0; i < model.tensors(); ++i) model.backward(i, gradient.tensor(i));
            model.step(gradient, epoch < 10 ? 0.05f : 0.01f);
        }
    }
    return model;
}

/// A member: trains its network, then answers whoever asks until it is ended.
int serve(std::string const& frontend, std::size_t which, training::digits const& images) {
    training::perceptron model = train(images, which + 1);
    training::batch image(1);
    voters::member me({.frontends = {frontend},
                       .name = names[which],
                       .elements = training::classes,
                       .request_bytes = sizeof(float) * training::pixels});
    while (auto job = me.next()) {
        if (job.input().size() != sizeof(float) * training::pixels) {
            job.decline(herring::decline::bad_input);
            continue;
        }
        std::memcpy(image.images.data(), job.input().data(), job.input().size());
        model.forward(image);
        std::span<float const> const scores = model.scores(); // logits: the row is what softmax would take
        std::copy(scores.begin(), scores.end(), job.row().begin());
        job.send();
    }
    for (auto const& to : me.status()) // there are no more requests: it was refused
        std::fprintf(stderr, "%s: %s\n", names[which], to.why.c_str());
    return EXIT_FAILURE;
}

/// Asks the first process for something, and waits until it is done.
void order(int pipe, int done, char what) {
    char answer = 0;
    if (write(pipe, &what, 1) != 1 || read(done, &answer, 1) != 1)
        throw std::runtime_error("the process that starts the others is gone");
}

/// Waits until `condition` holds, for at most 30 s.
template <class Condition> void wait_until(char const* what, Condition condition) {
    for (int i = 0; !condition(); ++i) {
        if (i == 3000) throw std::runtime_error(std::string("waited 30 s in vain until ") + what);
        std::this_thread::sleep_for(10ms);
    }
}

/// The frontend: asks for every test image, `rounds` times in each of four phases.
int ask(voters::frontend& front, int pipe, int done, training::digits const& images, std::size_t rounds) {
    wait_until("all members are there", [&] { return front.admitted() == names.size(); });
    std::printf("%zu networks 64-16-10, each a process; %zu test images; a request ends after %lld ms, with "
                "3 answers at least\n\n",
                names.size(), images.size(), static_cast<long long>(deadline / 1ms));

    report::quality mean;
    std::array<report::quality, names.size()> each;
    for (std::size_t i = 0; i < images.size(); ++i) { // all five are waited for, to compare them
        voters::answer const answer =
            front.ask(std::as_bytes(std::span(images.images[i])), 10s, {.k = names.size()});
        if (!answer) continue;
        mean.add(answer.values(), images.labels[i]);
        answer.member_rows([&](auto const& of) {
            std::array<float, training::classes> row;
            of.copy_to(row);
            each[of.member()].add(row, images.labels[i]);
        });
    }
    std::printf("            accuracy   calibration error\n");
    for (std::size_t m = 0; m < names.size(); ++m) each[m].print(names[m]);
    mean.print("the mean");
    std::printf("\n");

    report::phases phases(names);
    auto const phase = [&](char const* what) {
        report::phase now;
        for (std::size_t round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i < images.size(); ++i) {
                auto const begin = std::chrono::steady_clock::now();
                voters::answer const answer = front.ask(std::as_bytes(std::span(images.images[i])), deadline);
                now.add(std::chrono::steady_clock::now() - begin, answer.outcome(), answer.contributors());
            }
        phases.add(what, now);
    };

    phase("all are there");
    order(pipe, done, 'k');
    phase("eve is killed");
    order(pipe, done, 's');
    phase("cleo is stopped, too");
    order(pipe, done, 'c');
    order(pipe, done, 'r');
    wait_until("all members are back", [&] { return front.admitted() == names.size(); });
    phase("both are back");

    phases.print();

    double best = 0;
    for (auto const& member : each) best = std::max(best, member.accuracy());
    // A machine that does other things meanwhile may hold up three of five for so long.
    bool const good = mean.accuracy() >= 0.96 && phases.unanswered() <= images.size() * rounds / 100;
    std::printf(
        "\n%s: the mean recognises %.2f %%, the best member %.2f %%; %zu requests without an answer\n",
        good ? "good" : "BAD", mean.accuracy() * 100, best * 100, phases.unanswered());
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int arguments, char** argument) {
    if (arguments < 2 || arguments > 3) {
        std::fprintf(stderr, "usage: ensemble digits.csv [rounds]\n");
        return 2;
    }
    std::size_t const rounds = arguments == 3 ? std::strtoul(argument[2], nullptr, 10) : 5;
    try {
        training::split data(training::load_digits(argument[1]));
        training::standardise(data);

        int to_first[2], to_frontend[2];
        if (pipe(to_first) != 0 || pipe(to_frontend) != 0) throw std::runtime_error("no pipe");
        pid_t const frontend = fork();
        if (frontend == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(to_first[0]);
            close(to_frontend[1]);
            voters::frontend front({.listen = "127.0.0.1:0",
                                    .members = {names.begin(), names.end()},
                                    .elements = training::classes,
                                    .request_bytes = sizeof(float) * training::pixels});
            std::string const address = front.address() + '\n';
            if (write(to_first[1], address.data(), address.size()) < 0) return EXIT_FAILURE;
            return ask(front, to_first[1], to_frontend[0], data.test, rounds);
        }
        close(to_first[1]);
        close(to_frontend[0]);
        std::string address;
        char letter = 0;
        while (read(to_first[0], &letter, 1) == 1 && letter != '\n') address += letter;

        std::array<pid_t, names.size()> member{};
        auto const start = [&](std::size_t which) {
            member[which] = fork();
            if (member[which] != 0) return;
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            int status = EXIT_FAILURE;
            try {
                status = serve(address, which, data.train);
            } catch (std::exception const& problem) {
                std::fprintf(stderr, "%s: %s\n", names[which], problem.what());
            }
            std::_Exit(status);
        };
        if (!address.empty())
            for (std::size_t which = 0; which < names.size(); ++which) start(which);
        while (read(to_first[0], &letter, 1) == 1) { // until the frontend has ended
            if (letter == 'k') kill(member[killed], SIGKILL), waitpid(member[killed], nullptr, 0);
            if (letter == 's') kill(member[stopped], SIGSTOP);
            if (letter == 'c') kill(member[stopped], SIGCONT);
            if (letter == 'r') start(killed);
            if (write(to_frontend[1], &letter, 1) != 1) break;
        }
        for (pid_t const process : member)
            if (process > 0) kill(process, SIGKILL), waitpid(process, nullptr, 0);
        int status = 0;
        waitpid(frontend, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "ensemble: %s\n", problem.what());
        return EXIT_FAILURE;
    }
}
