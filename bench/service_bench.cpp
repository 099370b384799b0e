// herring: a service in the bench: its parent, and the ranks of jobs, which count the steps that end in a window of time.
// SPDX-License-Identifier: Apache-2.0
//
//   service_bench serve HOST:PORT TENANTS RATE     RATE in Mbit/s
//   service_bench clock                            prints the seconds of the clock of --begin
//   service_bench job --begin SECONDS --seconds SECONDS [--pause SECONDS --seed N] [--services HOST:PORT --tenant NAME --key FILE]
//                                 joins by HERRING_RANK, _SIZE, _ADDR and _ROLE, 2 s before the window, with one server that a service lends,
//                                 if services are given; a step sums a megabyte, after a pause of half to one and a half of what is given;
//                                 worker 0 prints steps a second, and the milliseconds of join
#include "harness.hpp"

#include <herring/herring.hpp>
#include <herring/join.hpp>
#include <herring/placement/dedicated.hpp>
#include <herring/serve.hpp>
#include <herring/service.hpp>
#include <herring/transport/tcp.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using sums = herring::reducer<float, herring::transport::tcp_over_slow_links, herring::update::sum,
                              herring::placement::dedicated>;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_job(bench::options const& opt) {
    double const begin = opt.number("begin", 0), end = begin + opt.number("seconds", 30);
    herring::layout const tensors{{"tensor", 250'000}, {"leaves", 1}};
    herring::join_options how;
    if (std::string const services = opt.text("services"); !services.empty()) {
        herring::lent_servers wish{.count = 1, .tenant = opt.text("tenant"), .key_file = opt.text("key")};
        how.servers = herring::served_by<sums>({services}, tensors, wish);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(begin - 2 - now()));
    double const asked = now();
    herring::world world = herring::join(how);
    double const joined = now();
    if (world.role() == herring::role::server) return herring::serve<sums>(world, tensors);
    sums reduce(world, tensors);
    double first = 0, last = 0; // ends of steps within the window
    int steps = -1;
    double phase = 0.37 * opt.number("seed", 1); // alike on the workers of a job
    while (true) {
        phase += 0.618034; // spread evenly, so that few pauses have the mean of many
        std::this_thread::sleep_for(
            std::chrono::duration<double>(opt.number("pause", 0) * (0.5 + phase - std::floor(phase))));
        reduce.tensor(0)[0] = 1; // the other elements stay 0
        reduce.tensor(1)[0] = now() > end ? 1.0f : 0.0f;
        reduce.ready(0);
        reduce.ready(1);
        reduce.wait();
        if (reduce.tensor(0)[0] != static_cast<float>(world.workers()))
            throw std::runtime_error("a wrong sum");
        if (reduce.tensor(1)[0] > 0) break; // on all workers in the same step
        if (double const at = now(); at >= begin && at <= end) {
            if (++steps == 0) first = at;
            last = at;
        }
    }
    if (steps < 1) throw std::runtime_error("a window in which no two steps end; make it longer");
    if (world.worker() == 0) std::printf("%.4f %.1f\n", steps / (last - first), 1e3 * (joined - asked));
}

} // namespace

int main(int argc, char** argv) {
    std::string const what = argc > 1 ? argv[1] : "";
    try {
        if (what == "serve" && argc == 5)
            herring::service<sums>(
                {.listen = argv[2], .tenants = argv[3], .ranks = 16, .rate = std::atoi(argv[4])})
                .run();
        else if (what == "clock")
            std::printf("%.3f\n", now());
        else if (what == "job")
            run_job(bench::options(argc - 1, argv + 1));
        else
            return 2;
        return 0;
    } catch (std::exception const& failed) {
        std::fprintf(stderr, "service_bench: %s\n", failed.what());
        return 1;
    }
}
