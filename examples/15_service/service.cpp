// service: one set of servers, which two jobs share; one of them is told to save, and goes on elsewhere.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: service serve host:port tenants.conf [metrics]     the servers
//        service status metrics                             what they wrote last
//        service train host:port[,host:port] tenant key-file checkpoint steps     a job of two ranks
#include <herring/checkpoint.hpp>
#include <herring/herring.hpp>
#include <herring/join.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/service.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <thread>

using trainer = herring::reducer<float, herring::transport::tcp, herring::placement::dedicated,
                                 herring::optimizer::adamw, herring::update::average>;
using summer =
    herring::reducer<float, herring::transport::tcp, herring::placement::dedicated, herring::update::sum>;

namespace {

herring::layout const model{{"embedding", 100'000}, {"head", 4'096}};
std::atomic<bool> leaves{false}; // of rank 0: the service is about to end

/// Trains until `steps` are done, or the service is about to end: 0, or the steps that are done by then.
int train(herring::world& world, std::string const& checkpoint, int steps) {
    trainer train(world, model);
    int done = 0;
    if (std::filesystem::exists(checkpoint + "/herring.manifest"))
        std::memcpy(&done, train.load(checkpoint).data(), sizeof done);
    else
        train.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 1.0f); });
    if (world.rank() == 0) std::printf("begins with step %d, on %d servers\n", done, world.servers());
    float all_leave = 0;
    while (done < steps && all_leave == 0) {
        for (std::size_t i = 0; i < train.size(); ++i) {
            std::ranges::fill(train.tensor(i), static_cast<float>(world.worker()));
            train.ready(i);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20)); // in place of forward and backward
        train.wait();
        ++done;
        all_leave = leaves ? 1 : 0; // as rank 0 knows it, all ranks leave in the same step
        train.all_reduce(std::span(&all_leave, 1));
    }
    train.save(checkpoint, std::as_bytes(std::span(&done, 1)));
    return done < steps ? done : 0;
}

int run_job(char** argv) {
    int const steps = std::atoi(argv[6]);
    while (true) try {
            leaves = false;
            // [snippet job]
            herring::lent_servers wish{
                .count = 2, .services = argv[2], .tenant = argv[3], .key_file = argv[4]};
            wish.queue_for = std::chrono::seconds(30);
            wish.on_drain = [](herring::failure const& why) {
                std::fprintf(stderr, "%s\n", why.text);
                leaves = true;
            };
            herring::world world = herring::join({.servers = herring::served_by<trainer>({}, model, wish)});
            // [end]
            int const done = train(world, argv[5], steps);
            if (world.rank() == 0)
                std::printf(done == 0 ? "all steps are done\n" : "saved behind step %d\n", done);
            if (done == 0) return 0;
        } catch (herring::error const& why) {
            if (why.code() != herring::errc::peer_lost) throw; // else from the checkpoint, at another service
            std::fprintf(stderr, "%s\n", why.what());
        }
}

} // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    try {
        std::string const what = argc > 1 ? argv[1] : "";
        if (what == "serve" && (argc == 4 || argc == 5)) {
            // [snippet service]
            herring::service<trainer, summer> all(
                {.listen = argv[2], .tenants = argv[3], .ranks = 4, .metrics = argc == 5 ? argv[4] : ""});
            all.run();
            // [end]
        } else if (what == "status" && argc == 3) {
            std::cout << std::ifstream(argv[2]).rdbuf();
        } else if (what == "train" && argc == 7) {
            return run_job(argv);
        } else {
            std::fprintf(stderr,
                         "usage: %s serve host:port tenants.conf [metrics] | status metrics |\n"
                         "       train host:port[,host:port] tenant key-file checkpoint steps\n",
                         argv[0]);
            return 2;
        }
        return 0;
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
}
