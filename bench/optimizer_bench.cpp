// herring: a step of optimizers in two phases, which know the norm of all gradients before they update, beside adamw, which does not.
// SPDX-License-Identifier: Apache-2.0
//
//   optimizer_bench --table FILE.csv --ranks 4     local workers; gradients lie in the reducer's memory
//     --links shm                                  or tcp: each worker is a node of its own, on loopback
//     --servers 2                                  with so many dedicated servers, over TCP; without it: colocated
//     --rounds 9 --seconds 0.3 [--pin 1]           turns of all in one run, each of some steps in a row, with a reducer of its own
//     [--out FILE] [--name NAME]                   a line of JSON for each; `name` is one for the network
//   optimizer_bench --placement dedicated|colocated --table FILE.csv ...     one rank of the world that herring::join() finds, over TCP
//
// Contenders: adamw, clipped<adamw> by a norm that is too small, so that it clips, and lamb. Bounds, as ratios to adamw: with shared
// memory the bytes that have to move through memory for each weight, where L workers are on the node: adamw 4L + 24 (gradients, weight
// and two moments in and out), clipped 8 more (a sum out and in), lamb 12 more (a direction out and in, the weight in once more). On
// hosts, whose network carries as much either way at once: 1 if colocated, for each phase fills both ways; 2 with dedicated servers,
// where the first phase fills one way and the second one the other. None on loopback, where the cores limit.
// With a norm that is never too great clipped<adamw> has to leave the weights of adamw, bit by bit, or the program ends with 1.
#include "harness.hpp"
#include "training_data.hpp"
#include "worker_team.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/optimizer/clipped.hpp>
#include <herring/optimizer/lamb.hpp>
#include <herring/placement/dedicated.hpp>
#include <herring/serve.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using herring::intra_node::none;
using herring::intra_node::shared_memory;
using herring::optimizer::adamw;
using herring::optimizer::lamb;
using clipped = herring::optimizer::clipped<adamw>;
using colocated = herring::placement::colocated;
using dedicated = herring::placement::dedicated;

template <class Optimizer, class Node, class Placement>
using trainer =
    herring::reducer<float, herring::transport::tcp, herring::update::average, Optimizer, Node, Placement>;

/// What a worker has measured of one optimizer.
struct measured {
    std::vector<double> us;
    std::size_t steps = 0; // of a turn
};

/// Calls `work(reducer, team)` on workers, with a reducer of its own.
template <class Trainer, class Work>
void with_reducer(herring::world& world, herring::layout const& tensors, Work const& work) {
    if constexpr (std::is_same_v<typename Trainer::pack::placement, dedicated>)
        if (world.role() == herring::role::server) return herring::serve<Trainer>(world, tensors);
    Trainer train(world, tensors);
    train.start(0, bench::initial_weights); // servers have the last ranks
    work(train, bench::team_of_workers(world, train));
}

template <class Trainer> void write_gradients(Trainer& train, int worker, int step) {
    for (std::size_t i = 0; i < train.size(); ++i) bench::write_gradient(i, train.tensor(i), worker, step);
}
template <class Trainer> void run_step(Trainer& train) {
    for (std::size_t i = train.size(); i-- > 0;) train.ready(i);
    train.wait();
}
template <class Trainer> void clip_at(Trainer& train, double norm) {
    auto values = train.hyper();
    if constexpr (requires { values.clip; }) {
        values.clip = norm;
        train.set(values);
    }
}

/// The weights after three steps whose gradients are not clipped.
template <class Trainer>
std::vector<float> weights_of(herring::world& world, herring::layout const& tensors) {
    std::vector<float> all;
    with_reducer<Trainer>(world, tensors, [&](auto& train, bench::team const& workers) {
        clip_at(train, 1e30);
        for (int step = 0; step < 3; ++step) {
            write_gradients(train, workers.rank, step);
            run_step(train);
        }
        for (std::size_t i = 0; i < train.size(); ++i) {
            auto const weights = train.weights(i);
            all.insert(all.end(), weights.begin(), weights.end());
        }
        workers.barrier(); // nobody leaves while another one still reads
    });
    return all;
}

template <class Trainer>
void take_turn(herring::world& world, herring::layout const& tensors, bench::options const& opt,
               measured& into) {
    with_reducer<Trainer>(world, tensors, [&](auto& train, bench::team const& workers) {
        clip_at(train, 1e-3);
        write_gradients(train, workers.rank, 0);
        auto const timed = [&](std::size_t count) {
            workers.barrier();
            double const start = bench::now_us();
            for (std::size_t i = 0; i < count; ++i) run_step(train);
            return workers.max(bench::now_us() - start) / static_cast<double>(count);
        };
        for (int i = 0; i < 3; ++i) run_step(train);
        if (into.steps == 0)
            into.steps = static_cast<std::size_t>(
                std::clamp(opt.number("seconds", 0.3) * 1e6 / timed(1), 1.0, 1000.0));
        into.us.push_back(timed(into.steps));
    });
}

struct row {
    char const* what;
    measured const& of;
    double more_bytes; ///< than adamw, of memory, a weight
};

template <class Node, class Placement>
int run(herring::world& world, bench::options const& opt, char const* placement) {
    bench::pin(opt, world.rank());
    auto const tensors = herring::layout::of(bench::read_table(opt.text("table")));
    using one_phase = trainer<adamw, Node, Placement>;
    using with_clip = trainer<clipped, Node, Placement>;
    using with_rates = trainer<lamb, Node, Placement>;
    if (weights_of<one_phase>(world, tensors) != weights_of<with_clip>(world, tensors)) {
        std::puts("optimizer_bench: gradients that were not clipped left other weights");
        return 1;
    }
    measured plain, clipping, scaling;
    int const rounds = static_cast<int>(std::max(opt.number("rounds", 9), 1.0));
    for (int round = 0; round < rounds; ++round)
        for (int turn = 0; turn < 3; ++turn) // who comes first changes
            switch ((turn + round) % 3) {
            case 0:
                take_turn<one_phase>(world, tensors, opt, plain);
                break;
            case 1:
                take_turn<with_clip>(world, tensors, opt, clipping);
                break;
            default:
                take_turn<with_rates>(world, tensors, opt, scaling);
            }
    if (world.role() == herring::role::server || world.worker() != 0) return 0;
    constexpr bool by_memory = std::is_same_v<Node, shared_memory>;
    std::string const table = bench::table_name(opt.text("table")),
                      name = opt.text("name", by_memory ? "memory" : "loopback");
    auto const here = static_cast<double>(world.topology().local_size(world.topology().node(world.rank())));
    for (row const& one :
         {row{"adamw", plain, 0}, row{"clipped<adamw>", clipping, 8}, row{"lamb", scaling, 12}}) {
        std::vector<double> ratio;
        for (std::size_t r = 0; r < one.of.us.size(); ++r) ratio.push_back(one.of.us[r] / plain.us[r]);
        double const bound = one.more_bytes == 0                    ? 0
                             : by_memory                            ? 1 + one.more_bytes / (4 * here + 24)
                             : name == "loopback"                   ? 0
                             : std::is_same_v<Placement, dedicated> ? 2
                                                                    : 1;
        std::string const said = bound > 0 ? "; bound " + std::to_string(bound).substr(0, 4) : "";
        double const us = bench::quantile(one.of.us, 0.5), times = bench::quantile(ratio, 0.5);
        std::printf("%-10s %-8s %-9s %d workers, %d servers: %-14s %9.2f ms a step, %.2f [%.2f %.2f] times "
                    "adamw's%s\n",
                    table.c_str(), name.c_str(), placement, world.workers(), world.servers(), one.what,
                    us / 1e3, times, bench::quantile(ratio, 0.25), bench::quantile(ratio, 0.75),
                    said.c_str());
        auto const path = opt.text("out");
        std::FILE* const out = path.empty() ? nullptr : std::fopen(path.c_str(), "a");
        if (out == nullptr) continue;
        std::fprintf(
            out,
            "{\"suite\":\"optimizers\",\"what\":\"%s\",\"network\":\"%s\",\"placement\":\"%s\",\"table\":\"%"
            "s\",\"workers\":%d,\"servers\":%d,\"us\":%.1f,\"times_adamw\":%.3f,\"bound\":%s}\n",
            one.what, name.c_str(), placement, table.c_str(), world.workers(), world.servers(), us, times,
            bound > 0 ? std::to_string(bound).c_str() : "null");
        std::fclose(out);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    if (opt.text("table").empty()) {
        std::fprintf(stderr, "optimizer_bench: --table FILE.csv is missing\n");
        return 2;
    }
    auto const workers = static_cast<int>(opt.number("ranks", 0)),
               servers = static_cast<int>(opt.number("servers", 0));
    if (workers == 0) {
        herring::world world = herring::join();
        return opt.text("placement", "dedicated") == "dedicated"
                   ? run<none, dedicated>(world, opt, "dedicated")
                   : run<none, colocated>(world, opt, "colocated");
    }
    herring::launch_options options;
    bool const by_memory = servers == 0 && opt.text("links", "shm") == "shm";
    for (int r = 0; r < workers + servers; ++r) {
        options.roles.push_back(r < workers ? herring::role::worker : herring::role::server);
        options.nodes.push_back(by_memory ? "node" : std::to_string(r));
    }
    return herring::launch(
        workers + servers,
        [&](herring::world& world) {
            if (servers > 0) return run<none, dedicated>(world, opt, "dedicated");
            if (by_memory) return run<shared_memory, colocated>(world, opt, "colocated");
            return run<none, colocated>(world, opt, "colocated");
        },
        options);
}
