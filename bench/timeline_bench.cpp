// herring: what trace::timeline costs: one event, and steps of a gradient table beside the same without a trace.
// SPDX-License-Identifier: Apache-2.0
//
//   timeline_bench --ranks 4 --table FILE.csv      local ranks, over shared memory and over TCP, in the reducer's memory
//     --rounds 15 --seconds 0.5 [--builds 5] [--pin 1]   turns of all in one run, each of some steps in a row
//     [--out FILE]                                 a line of JSON for each
//
// Bounds: 20 ns an event, 1 % of a step. Both are printed with what was measured; what exceeds one says so.
//
// Two reducers of one type differ, by where their memory lies, more than a timeline takes. So there are two without a trace and one
// with it, all three are constructed anew --builds times, in another order each time, and take turns: "ratio" is of the traced one to
// the mean of the other two in the same round, "noise" of these two to each other. All ratios are medians, with quartiles. "share" is
// what the events of a step take by themselves, number times nanoseconds, of the step. A fourth one records each event 256 times: "share
// measured" is what its steps take longer, divided by 256, with all that a step has beside the event itself, and more of the caches.
#include "harness.hpp"
#include "world_team.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/trace/timeline.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

namespace {

using average = herring::update::average;
using shared_memory = herring::intra_node::shared_memory;
using none = herring::intra_node::none;
template <class Node> using plain = herring::reducer<float, herring::transport::tcp, Node, average>;
template <class Node>
using traced =
    herring::reducer<float, herring::transport::tcp, Node, average, herring::trace::timeline<1 << 16>>;

constexpr int times = 256;
struct repeated_timeline : herring::trace::timeline<1 << 16> {
    void record(herring::trace_event event, herring::trace_details const& of) noexcept {
        for (int i = 0; i < times; ++i) timeline::record(event, of);
    }
};
template <class Node>
using repeated = herring::reducer<float, herring::transport::tcp, Node, average, repeated_timeline>;

void print(bench::options const& opt, char const* line) {
    std::printf("%s\n", line);
    if (auto const out = opt.text("out"); !out.empty())
        if (std::FILE* const file = std::fopen(out.c_str(), "a")) {
            std::fprintf(file, "%s\n", line);
            std::fclose(file);
        }
}

/// The value below which this share of them lies.
double quantile(std::vector<double> of, double share) {
    std::sort(of.begin(), of.end());
    return of[static_cast<std::size_t>(static_cast<double>(of.size() - 1) * share + 0.5)];
}
double median(std::vector<double> const& of) { return quantile(of, 0.5); }

/// The best of some loops: what an event takes when nothing else runs on this core.
double one_event(bench::options const& opt) {
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
    return best;
}

template <class Node>
void steps_of(herring::world& world, bench::options const& opt, char const* how, double event_ns) {
    auto const ranks = bench::team_of(world);
    herring::layout const tensors = herring::layout::of(bench::read_table(opt.text("table")));
    // Gradients as backward leaves them: last tensor first.
    auto const step = [](auto& reduce) {
        for (std::size_t i = reduce.size(); i-- > 0;) reduce.ready(i);
        reduce.wait();
    };
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
    std::vector<double> plain_us, traced_us, ratio, noise, longer;
    double events = 0;
    auto const builds = std::max<std::size_t>(static_cast<std::size_t>(opt.number("builds", 5)), 1);
    auto const rounds = std::max<std::size_t>(static_cast<std::size_t>(opt.number("rounds", 15)) / builds, 1);
    for (std::size_t b = 0; b < builds; ++b) {
        std::optional<plain<Node>> without, again;
        std::optional<traced<Node>> with;
        std::optional<repeated<Node>> often;
        for (std::size_t turn = 0; turn < 4; ++turn) {
            std::size_t const who = (turn + b) % 4;
            if (who == 0) without.emplace(world, tensors);
            if (who == 1) again.emplace(world, tensors);
            if (who == 2) with.emplace(world, tensors);
            if (who == 3) often.emplace(world, tensors);
        }
        for (int i = 0; i < 3; ++i) step(*without), step(*again), step(*with), step(*often);
        if (count == 0) timed(*without);
        for (std::size_t r = 0; r < rounds; ++r) {
            double us[4] = {};
            for (std::size_t turn = 0; turn < 4;
                 ++turn) { // who comes first changes, so that nobody gains by it
                std::size_t const who = (turn + r) % 4;
                us[who] = who == 0   ? timed(*without)
                          : who == 1 ? timed(*again)
                          : who == 2 ? timed(*with)
                                     : timed(*often);
            }
            plain_us.push_back((us[0] + us[1]) / 2);
            traced_us.push_back(us[2]);
            ratio.push_back(us[2] / plain_us.back());
            noise.push_back(us[1] / us[0]);
            longer.push_back((us[3] / plain_us.back() - 1) / times);
        }
        auto const recorded = [&] {
            herring::timeline_report const now = with->trace().report();
            return static_cast<double>(now.records + now.lost);
        };
        events = -recorded();
        step(*with);
        events += recorded();
    }
    if (world.rank() != 0) return;
    char line[600];
    std::snprintf(
        line, sizeof line,
        "{\"suite\":\"timeline\",\"what\":\"step, %s\",\"ranks\":%d,\"plain_us\":%.1f,\"traced_us\":%.1f,"
        "\"ratio\":%.4f,\"quartiles\":[%.4f,%.4f],\"noise\":%.4f,\"noise_quartiles\":[%.4f,%.4f],"
        "\"bound\":1.01,\"events\":%.0f,\"share\":%.5f,\"share_measured\":%.5f,\"holds\":%s}",
        how, world.size(), median(plain_us), median(traced_us), median(ratio), quantile(ratio, 0.25),
        quantile(ratio, 0.75), median(noise), quantile(noise, 0.25), quantile(noise, 0.75), events,
        events * event_ns * 1e-3 / median(plain_us), median(longer),
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
    double const event_ns = one_event(opt);
    return herring::launch(static_cast<int>(opt.number("ranks", 4)), [&](herring::world& world) {
        bench::pin(opt, world.rank());
        steps_of<shared_memory>(world, opt, "shared memory", event_ns);
        steps_of<none>(world, opt, "tcp", event_ns);
    });
}
