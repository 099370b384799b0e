// herring: what work in gaps costs a step, and what it gets done: a checkpoint, and a task that never ends.
// SPDX-License-Identifier: Apache-2.0
//
//   gaps_bench --elements 2000000 --folder DIR      one rank of the world that herring::join() finds, on a network that is waited for
//     --ranks 2                                     or that many local ones: on loopback there is hardly a gap
//     --rounds 15 --steps 20                        turns in one run, each of some steps in a row
//     [--out FILE] [--network NAME]                 a line of JSON; `network` is a name for it
//
// Contenders, in turn: steps alone; steps in whose gaps the checkpoint of the first one is written; steps in whose gaps a task has always
// something to do; and one `save` at once. Bound: a step at most 1 % slower. What does not lie in a step, the beginning and the end of
// a checkpoint, is printed beside.
#include "harness.hpp"
#include "world_team.hpp"

#include <herring/gap_checkpoint.hpp>
#include <herring/herring.hpp>
#include <herring/in_gaps.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using trainer = herring::reducer<float, herring::transport::tcp, herring::update::average,
                                 herring::optimizer::adamw, herring::progress::thread>;

double at(std::vector<double> of, double quantile) {
    std::sort(of.begin(), of.end());
    return of[static_cast<std::size_t>(quantile * static_cast<double>(of.size() - 1))];
}

/// Copies a block of 64 KiB, again and again: what the checkpoint does, without an end.
struct endless {
    std::vector<std::byte> from = std::vector<std::byte>(65'536 * 64), to = std::vector<std::byte>(65'536);
    std::size_t next_block = 0;
    std::chrono::nanoseconds quantum() const noexcept { return std::chrono::microseconds(100); }
    bool next() noexcept {
        for (int i = 0; i < 8; ++i)
            std::memcpy(to.data(), from.data() + 65'536 * (next_block++ % 64), to.size());
        return true;
    }
};

int run(herring::world& world, bench::options const& opt) {
    bench::pin(opt, world.rank());
    auto const ranks = bench::team_of(world);
    auto const elements = static_cast<std::size_t>(opt.number("elements", 2e6));
    trainer train(world, {{"first", elements / 4}, {"second", elements / 2}, {"third", elements / 4}});
    train.start(0, [](std::size_t, std::span<float> into) { std::ranges::fill(into, 1.0f); });
    herring::gap_checkpoint checkpoint(train);
    endless copies;
    auto saving = train.in_gaps(checkpoint);
    auto copying = train.in_gaps(copies);
    std::string const folder = opt.text("folder");

    auto const step = [&](auto& waits) {
        for (std::size_t i = train.size(); i-- > 0;) {
            std::ranges::fill(train.tensor(i), 0.5f); // backward
            train.ready(i);
        }
        waits.wait();
    };
    auto const steps = static_cast<std::size_t>(std::max(opt.number("steps", 20), 9.0));
    auto const timed = [&](auto& waits) { // ms a step, the slowest rank's
        double const start = bench::now_us();
        for (std::size_t i = 0; i < steps; ++i) step(waits);
        return ranks.max(bench::now_us() - start) / 1e3 / static_cast<double>(steps);
    };
    auto const once = [&](auto const& call) { // ms
        ranks.barrier();
        double const start = bench::now_us();
        call();
        return ranks.max(bench::now_us() - start) / 1e3;
    };
    for (std::size_t i = 0; i < 9; ++i) step(saving), step(copying); // they learn the gaps
    std::vector<double> alone, with_saving, with_copying, saving_ratio, copying_ratio, begin, finish, save;
    std::size_t written = 0;
    auto const rounds = std::max<std::size_t>(static_cast<std::size_t>(opt.number("rounds", 15)), 3);
    for (std::size_t r = 0; r < rounds; ++r) {
        double own = 0, saved = 0, copied = 0;
        for (std::size_t turn = 0; turn < 3; ++turn) // who comes first changes
            switch ((turn + r) % 3) {
            case 0:
                own = timed(train);
                break;
            case 1:
                begin.push_back(once([&] { checkpoint.begin(folder); }));
                saved = timed(saving);
                written += ranks.sum(checkpoint.written() ? 0 : 1) == 0;
                finish.push_back(once([&] { checkpoint.finish(); }));
                break;
            default:
                copied = timed(copying);
            }
        save.push_back(once([&] { train.save(folder); }));
        alone.push_back(own);
        with_saving.push_back(saved);
        with_copying.push_back(copied);
        saving_ratio.push_back(saved / own);
        copying_ratio.push_back(copied / own);
    }
    double const share = saving.report().share(), share_copying = copying.report().share();
    std::string const says = to_string(saving.report()), says_copying = to_string(copying.report());
    if (world.rank() != 0) return 0;
    double const worst = std::max(at(saving_ratio, 0.5), at(copying_ratio, 0.5));
    std::printf("step alone %.2f ms; with a checkpoint in gaps %.4f [%.4f %.4f] times, with gaps always full "
                "%.4f [%.4f "
                "%.4f] times (bound 1.01: %s)\n",
                at(alone, 0.5), at(saving_ratio, 0.5), at(saving_ratio, 0.25), at(saving_ratio, 0.75),
                at(copying_ratio, 0.5), at(copying_ratio, 0.25), at(copying_ratio, 0.75),
                worst <= 1.01 ? "holds" : "exceeded");
    std::printf(
        "checkpoint: %zu of %zu written in gaps; begin %.2f ms, finish %.2f ms; save at once %.2f ms\n",
        written, rounds, at(begin, 0.5), at(finish, 0.5), at(save, 0.5));
    std::printf("rank 0, checkpoint: %s\nrank 0, always full: %s\n", says.c_str(), says_copying.c_str());
    if (auto const path = opt.text("out"); !path.empty())
        if (std::FILE* const out = std::fopen(path.c_str(), "a")) {
            std::fprintf(
                out,
                "{\"suite\":\"gaps\",\"what\":\"gaps\",\"network\":\"%s\",\"ranks\":%d,\"elements\":%zu,"
                "\"step_ms\":%.3f,"
                "\"checkpoint_ratio\":%.4f,\"full_ratio\":%.4f,\"bound\":1.01,\"checkpoint_share\":%.4f,"
                "\"full_share\":%.4f,\"full_lost_us\":%.2f,\"written\":%zu,\"rounds\":%zu,\"begin_ms\":%.3f,"
                "\"finish_ms\":%.3f,"
                "\"save_ms\":%.3f,\"holds\":%s}\n",
                opt.text("network", "local").c_str(), world.size(), elements, at(alone, 0.5),
                at(saving_ratio, 0.5), at(copying_ratio, 0.5), share, share_copying,
                static_cast<double>(copying.report().lost_by_step().count()) / 1e3, written, rounds,
                at(begin, 0.5), at(finish, 0.5), at(save, 0.5), worst <= 1.01 ? "true" : "false");
            std::fclose(out);
        }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    if (opt.text("folder").empty()) {
        std::fprintf(stderr,
                     "usage: gaps_bench --folder DIR [--ranks N] [--elements N] [--rounds N] [--steps N]\n");
        return 2;
    }
    auto const ranks = static_cast<int>(opt.number("ranks", 0));
    if (ranks > 0) return herring::launch(ranks, [&](herring::world& world) { return run(world, opt); });
    herring::world world = herring::join();
    return run(world, opt);
}
