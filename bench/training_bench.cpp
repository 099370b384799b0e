// herring: a step with AdamW, updated where gradients are summed, beside a reduction and then the update by every rank.
// SPDX-License-Identifier: Apache-2.0
//
//   training_bench --ranks 4 --table FILE.csv      local ranks, over shared memory; both keep gradients in the reducer's memory
//     --rounds 15 --seconds 0.5 [--pin 1]          turns of the two in one run, each of some steps in a row
//     [--out FILE]                                 one line of JSON
//
// The update of the second is vectorised, reads and writes everything once, and is the optimizer's own `step`: after some steps the
// weights of both have to be the same bits, or the program ends with 1.
#include "adamw_replica.hpp"
#include "harness.hpp"
#include "world_team.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using herring::optimizer::adamw;
using shared_memory = herring::intra_node::shared_memory;
using average = herring::update::average;
using fused = herring::reducer<float, herring::transport::tcp, shared_memory, average, adamw>;
using plain = herring::reducer<float, herring::transport::tcp, shared_memory, average>;

int run(herring::world& world, bench::options const& opt) {
    bench::pin(opt, world.rank());
    auto const ranks = bench::team_of(world);
    auto const counts = bench::read_table(opt.text("table"));
    herring::layout const tensors = herring::layout::of(counts);
    double parameters = 0;
    for (std::size_t const n : counts) parameters += static_cast<double>(n);

    fused train(world, tensors);
    plain reduce(world, tensors);
    bench::adamw_replica own(counts);
    train.start(0, bench::initial_weights);

    auto const write = [&](auto& of, int step) {
        for (std::size_t i = 0; i < counts.size(); ++i)
            bench::write_gradient(i, of.tensor(i), world.rank(), step);
    };
    auto const by_fused = [&] {
        for (std::size_t i = counts.size(); i-- > 0;) train.ready(i);
        train.wait();
    };
    auto const by_twin = [&] {
        for (std::size_t i = counts.size(); i-- > 0;) reduce.ready(i);
        reduce.wait();
        own.begin_step();
        for (std::size_t i = 0; i < counts.size(); ++i) own.update(i, reduce.tensor(i).data());
    };
    for (int step = 0; step < 3; ++step) {
        write(train, step);
        write(reduce, step);
        by_fused();
        by_twin();
    }
    bool same = true;
    for (std::size_t i = 0; i < counts.size(); ++i)
        same = same &&
               std::memcmp(train.weights(i).data(), own.weights(i).data(), counts[i] * sizeof(float)) == 0;
    if (ranks.sum(same ? 0 : 1) > 0) {
        if (ranks.rank == 0) std::puts("training_bench: the weights of the two differ");
        return 1;
    }

    std::vector<double> of_fused, of_twin, ratio;
    auto const rounds = std::max<std::size_t>(static_cast<std::size_t>(opt.number("rounds", 15)), 3);
    std::size_t steps = 0;
    auto const timed = [&](auto const& step) {
        step();
        double const start = bench::now_us();
        std::size_t const count = std::max<std::size_t>(steps, 1);
        for (std::size_t i = 0; i < count; ++i) step();
        double const us = ranks.max(bench::now_us() - start) / static_cast<double>(count);
        if (steps == 0)
            steps = static_cast<std::size_t>(std::clamp(opt.number("seconds", 0.5) * 1e6 / us, 1.0, 1000.0));
        return us;
    };
    for (std::size_t round = 0; round <= rounds; ++round) { // the first one warms up
        double const fused_us = timed(by_fused), twin_us = timed(by_twin);
        if (round == 0) continue;
        of_fused.push_back(fused_us);
        of_twin.push_back(twin_us);
        ratio.push_back(twin_us / fused_us);
    }
    if (ranks.rank != 0) return 0;
    auto const at = [](std::vector<double> of, double quantile) {
        std::sort(of.begin(), of.end());
        return of[static_cast<std::size_t>(quantile * static_cast<double>(of.size() - 1))];
    };
    std::string const table = bench::table_name(opt.text("table"));
    double const moved =
        parameters * (4.0 * ranks.size + 24); // gradients read; weights and two moments read and written
    std::printf("%-11s %d ranks: updated at the sum %8.2f ms, reduced and then updated by every rank %8.2f "
                "ms: %.2f times [%.2f %.2f]; "
                "%.1f GB/s of what has to move\n",
                table.c_str(), ranks.size, at(of_fused, 0.5) / 1e3, at(of_twin, 0.5) / 1e3, at(ratio, 0.5),
                at(ratio, 0.25), at(ratio, 0.75), moved / at(of_fused, 0.5) / 1e3);
    if (auto const path = opt.text("out"); !path.empty())
        if (std::FILE* const out = std::fopen(path.c_str(), "a")) {
            std::fprintf(out,
                         "{\"suite\":\"training\",\"what\":\"training\",\"table\":\"%s\",\"ranks\":%d,"
                         "\"fused_us\":%.1f,\"twin_us\":%.1f,"
                         "\"ratio\":%.3f,\"bytes\":%.0f}\n",
                         table.c_str(), ranks.size, at(of_fused, 0.5), at(of_twin, 0.5), at(ratio, 0.5),
                         moved);
            std::fclose(out);
        }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    if (opt.text("table").empty()) {
        std::fprintf(stderr, "training_bench: --table FILE.csv is missing\n");
        return 2;
    }
    int const size = static_cast<int>(opt.number("ranks", 2));
    return herring::launch(size, [&](herring::world& world) { return run(world, opt); });
}
