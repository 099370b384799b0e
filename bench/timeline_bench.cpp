// herring: what trace::timeline costs: one event, and steps of a gradient table beside the same without a trace.
// SPDX-License-Identifier: Apache-2.0
//
//   timeline_bench --ranks 4 --table FILE.csv      local ranks, over shared memory and over TCP, in the reducer's memory
//     --rounds 15 --seconds 0.5 [--pin 1]          turns of the two in one run, each of some steps in a row
//     [--out FILE]                                 a line of JSON for each
//
// Bounds: 20 ns an event, 1 % of a step. Both are printed with what was measured; what exceeds one says so.
#include "harness.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/trace/timeline.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using average = herring::update::average;
using shared_memory = herring::intra_node::shared_memory;
using none = herring::intra_node::none;
template <class Node> using plain = herring::reducer<float, herring::transport::tcp, Node, average>;
template <class Node>
using traced =
    herring::reducer<float, herring::transport::tcp, Node, average, herring::trace::timeline<1 << 16>>;

bench::team team_of(herring::world& world) {
    return {world.rank(), world.size(), [&world] { world.barrier(); },
            [&world](std::vector<double> const& mine) {
                std::vector<double> all;
                for (auto const& bytes : world.all_gather(std::as_bytes(std::span(mine)))) {
                    all.resize(all.size() + mine.size());
                    std::memcpy(&all[all.size() - mine.size()], bytes.data(), bytes.size());
                }
                return all;
            }};
}

void print(bench::options const& opt, char const* line) {
    std::printf("%s\n", line);
    if (auto const out = opt.text("out"); !out.empty())
        if (std::FILE* const file = std::fopen(out.c_str(), "a")) {
            std::fprintf(file, "%s\n", line);
            std::fclose(file);
        }
}

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

/// The best of some loops: what an event takes when nothing else runs on this core.
void one_event(bench::options const& opt) {
    herring::world alone;
    herring::layout const none_at_all;
    herring::trace::timeline<1 << 16> kept;
    kept.attach({alone, none_at_all, {}, 0, 1, false});
    constexpr std::uint32_t events = 100'000;
    double best = 1e9;
    for (int loop = 0; loop < 30; ++loop) {
        double const start = bench::now_us();
        for (std::uint32_t i = 0; i < events; ++i)
            kept.record(herring::trace_event::part_sent,
                        {.index = i, .peer = 0, .execution = i, .bytes = i, .message = i});
        best = std::min(best, (bench::now_us() - start) * 1e3 / events);
    }
    char line[200];
    std::snprintf(
        line, sizeof line,
        "{\"suite\":\"timeline\",\"what\":\"event\",\"ns\":%.1f,\"bound_ns\":20,\"tsc\":%s,\"holds\":%s}",
        best, herring::detail::tick_counter().is_tsc() ? "true" : "false", best <= 20 ? "true" : "false");
    print(opt, line);
}

template <class Node> void steps_of(herring::world& world, bench::options const& opt, char const* how) {
    auto const ranks = team_of(world);
    herring::layout const tensors = herring::layout::of(bench::read_table(opt.text("table")));
    plain<Node> without(world, tensors);
    traced<Node> with(world, tensors);
    // Gradients as backward leaves them: last tensor first.
    auto const step = [](auto& reduce) {
        for (std::size_t i = reduce.size(); i-- > 0;) reduce.ready(i);
        reduce.wait();
    };
    for (int i = 0; i < 3; ++i) step(without), step(with);
    std::size_t count = 0;
    auto const timed = [&](auto& reduce) {
        step(reduce);
        double const start = bench::now_us();
        std::size_t const some = std::max<std::size_t>(count, 1);
        for (std::size_t i = 0; i < some; ++i) step(reduce);
        double const us = ranks.max(bench::now_us() - start) / static_cast<double>(some);
        if (count == 0)
            count = static_cast<std::size_t>(std::clamp(opt.number("seconds", 0.5) * 1e6 / us, 1.0, 1000.0));
        return us;
    };
    timed(without);
    std::vector<double> plain_us, traced_us, ratio;
    auto const rounds = std::max<std::size_t>(static_cast<std::size_t>(opt.number("rounds", 15)), 3);
    for (std::size_t r = 0; r < rounds; ++r) {
        // Who comes first changes, so that neither gains by it.
        double const first = r % 2 == 0 ? timed(without) : timed(with);
        double const second = r % 2 == 0 ? timed(with) : timed(without);
        plain_us.push_back(r % 2 == 0 ? first : second);
        traced_us.push_back(r % 2 == 0 ? second : first);
        ratio.push_back(traced_us.back() / plain_us.back());
    }
    std::uint64_t const before = with.trace().report().records + with.trace().report().lost;
    step(with);
    double const events =
        static_cast<double>(with.trace().report().records + with.trace().report().lost - before);
    if (world.rank() != 0) return;
    char line[400];
    std::snprintf(
        line, sizeof line,
        "{\"suite\":\"timeline\",\"what\":\"step, %s\",\"ranks\":%d,\"plain_us\":%.1f,\"traced_us\":%.1f,"
        "\"ratio\":%.4f,\"bound\":1.01,\"events\":%.0f,\"holds\":%s}",
        how, world.size(), median(plain_us), median(traced_us), median(ratio), events,
        median(ratio) <= 1.01 ? "true" : "false");
    print(opt, line);
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    if (opt.text("table").empty()) {
        std::fprintf(
            stderr,
            "usage: timeline_bench --ranks 4 --table FILE.csv [--rounds N] [--seconds S] [--out FILE]\n");
        return 2;
    }
    one_event(opt);
    return herring::launch(static_cast<int>(opt.number("ranks", 4)), [&](herring::world& world) {
        bench::pin(opt, world.rank());
        steps_of<shared_memory>(world, opt, "shared memory");
        steps_of<none>(world, opt, "tcp");
    });
}
