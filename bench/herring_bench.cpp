// herring: Herring in the bench: in place and from the caller's memory, sweeps, gradient tables, a wait that blocks.
// SPDX-License-Identifier: Apache-2.0
//
//   herring_bench --ranks 4 ...   forks local ranks; without --ranks it joins by HERRING_RANK, _SIZE and _ADDR
//     --node shared_memory|none   how ranks of one machine reduce: through memory, or over TCP like strangers
//     --memory in_place|callers   where the gradients lie
//     --links fast|slow|checked|sealed     transport::tcp, its preset for links of 1 Gbit/s, checked<tcp>, or, if built with
//                                 BENCH_WITH_SEALED, sealed<tcp>: all-reduces
//     --provider tcp|shm          transport::ofi over that provider of libfabric, if built with BENCH_WITH_OFI
//     --operation all_reduce|reduce_scatter|all_gather|broadcast|all_to_all|gather|scatter     of a sweep; all but the first in std::vectors of the caller's
//     --operation shares          what share of an all_reduce's time a reduce_scatter and an all_gather take: in turns of calls in a
//                                 row, in one run, so that all find the same machine; --rounds 15
//     --operation forms           an all-reduce of one tensor in the same turns: a step with the reducer's own, a buffer of the
//                                 caller's, and a step with memory of the caller's
//     --operation rules           all_reduce and reduce_scatter of a reducer with one rule, and of one with update::any of five, in
//                                 such turns
//     --operation all_moments     the same beside what it stands for: two all-reduces, with the squares between them; and beside one
//     --sizes 8,1024 | --table FILE.csv | --late SECONDS | --uneven 1    what is measured
//     --suite NAME [--out FILE]   and harness.hpp's options
#include "harness.hpp"
#include "world_team.hpp"

#include <herring/collectives/all_gather.hpp>
#include <herring/collectives/all_moments.hpp>
#include <herring/collectives/all_to_all.hpp>
#include <herring/collectives/broadcast.hpp>
#include <herring/collectives/gather.hpp>
#include <herring/collectives/reduce_scatter.hpp>
#include <herring/collectives/scatter.hpp>
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/transport/checked.hpp>
#include <herring/transport/tcp.hpp>
#include <herring/update/any.hpp>
#ifdef BENCH_WITH_SEALED
#include <herring/transport/sealed.hpp>
#endif
#ifdef BENCH_WITH_OFI
#include <herring/transport/ofi.hpp>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace {

template <class Reducer>
void sweep(herring::world& world, bench::options const& opt, char const* name = "Herring, in place") {
    bool const in_place = opt.text("memory", "in_place") == "in_place";
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        if (in_place) {
            Reducer reduce{world, herring::layout{{"tensor", n}}};
            auto const run = [&] {
                reduce.ready(0);
                reduce.wait();
            };
            char const* const shown = world.topology().racks() > 1 ? "Herring by racks, in place" : name;
            bench::measure(bench::team_of(world), opt,
                           {shown, bytes, {reduce.tensor(0)}, true, {{"ready + wait", run}}});
        } else {
            Reducer reduce{world};
            std::vector<float> memory(n);
            std::span<float> const x(memory);
            bench::measure(bench::team_of(world), opt,
                           {"Herring, caller's memory", bytes, {x}, true, {{"all_reduce", [&reduce, x] {
                                                                                reduce.all_reduce(x);
                                                                            }}}});
        }
    }
}

/// Reduce-scatter, all-gather, broadcast, all-to-all, gather or scatter between std::vectors of the caller's, or within one.
template <class Reducer> void sweep(herring::world& world, bench::options const& opt, bench::pattern kind) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        bool const in_place = opt.text("memory", "in_place") == "in_place";
        Reducer reduce{world};
        auto const range = [&](int r) {
            herring::range const owned = reduce.owned(n, r);
            return std::pair(owned.offset, owned.elements);
        };
        bench::collective_memory memory(kind, world.rank(), world.size(), n, range, in_place);
        std::span<float> const whole(memory.whole), part(memory.mine);
        std::vector<bench::candidate> candidates;
        if (kind == bench::pattern::reduce_scatter)
            candidates = {{"reduce_scatter", [&] { herring::reduce_scatter(reduce, whole, part); }}};
        else if (kind == bench::pattern::all_gather)
            candidates = {{"all_gather", [&] { herring::all_gather(reduce, part, whole); }}};
        else if (kind == bench::pattern::all_to_all)
            candidates = {{"all_to_all", [&] { herring::all_to_all(reduce, whole, part); }}};
        else if (kind == bench::pattern::gather)
            candidates = {{"gather", [&] { herring::gather(reduce, part, whole, 0); }}};
        else if (kind == bench::pattern::scatter)
            candidates = {{"scatter", [&] { herring::scatter(reduce, whole, part, 0); }}};
        else
            candidates = {{"broadcast", [&] { herring::broadcast(reduce, whole, 0); }}};
        bench::measure(
            bench::team_of(world), opt,
            memory.row(in_place ? "Herring, in place" : "Herring, caller's memory", true, candidates));
    }
}

/// What takes turns with others, and what its calls took in each round.
struct contender {
    char const* what;
    std::function<void()> run;
    std::vector<double> us = {}, share = {}, cpu = {};
};

/// Contenders in turns, each of some calls in a row; of the ratios to the first one of the same turn the median and the quartiles
/// count. With more ranks than cores a single run says little: how they come to their turns on the cores differs from run to run
/// more than the contenders do. With `--suite` rank 0 appends a JSON line of each to `--out`.
void take_turns(bench::team const& ranks, bench::options const& opt, std::size_t bytes,
                std::span<contender> rows) {
    auto const rounds = std::max<std::size_t>(static_cast<std::size_t>(opt.number("rounds", 15)), 3);
    std::size_t calls = 0;
    for (std::size_t round = 0; round <= rounds; ++round) { // the first one warms up
        for (contender& r : rows) {
            for (int i = 0; i < 2; ++i) r.run(); // the kernel places ranks that slept in the barrier
            double const cpu_start = bench::cpu_seconds(), start = bench::now_us();
            for (std::size_t i = 0; i < std::max<std::size_t>(calls, 1); ++i) r.run();
            double const divisor = static_cast<double>(std::max<std::size_t>(calls, 1));
            double const us = ranks.max(bench::now_us() - start) / divisor;
            double const cpu = ranks.sum(bench::cpu_seconds() - cpu_start) * 1e6 / divisor;
            if (calls == 0)
                calls = static_cast<std::size_t>(
                    std::clamp(opt.number("seconds", 0.05) * 1e6 / us, 1.0, 10000.0));
            if (round == 0) continue;
            r.us.push_back(us);
            r.cpu.push_back(cpu);
            r.share.push_back(us / rows[0].us.back());
        }
    }
    if (ranks.rank != 0) return;
    for (contender const& r : rows) {
        double const us = bench::quantile(r.us, 0.5), share = bench::quantile(r.share, 0.5);
        std::printf("%2d ranks %10zu B  %-32s %10.1f us  cpu %10.1f us  share %.2f [%.2f %.2f]\n", ranks.size,
                    bytes, r.what, us, bench::quantile(r.cpu, 0.5), share, bench::quantile(r.share, 0.25),
                    bench::quantile(r.share, 0.75));
        if (opt.text("suite").empty()) continue;
        if (std::FILE* const out = std::fopen(opt.text("out", "/dev/stdout").c_str(), "a")) {
            std::fprintf(out,
                         "{\"suite\":\"%s\",\"what\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.3f,"
                         "\"share\":%.4f}\n",
                         opt.text("suite").c_str(), r.what, ranks.size, bytes, us, share);
            std::fclose(out);
        }
    }
}

/// All_reduce, reduce_scatter and all_gather.
template <class Reducer> void shares(herring::world& world, bench::options const& opt) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        Reducer reduce{world};
        herring::range const own = reduce.owned(n);
        std::vector<float> reduced(n, 1), scattered(n, 1), gathered(n, 1), part(own.elements),
            mine(own.elements, 1);
        std::span<float> const whole(scattered), all(gathered);
        contender rows[] = {
            {"all_reduce, caller's memory", [&] { reduce.all_reduce(std::span(reduced)); }},
            {"reduce_scatter, in place",
             [&] { herring::reduce_scatter(reduce, whole, whole.subspan(own.offset, own.elements)); }},
            {"reduce_scatter, caller's memory",
             [&] { herring::reduce_scatter(reduce, whole, std::span(part)); }},
            {"all_gather, in place",
             [&] { herring::all_gather(reduce, all.subspan(own.offset, own.elements), all); }},
            {"all_gather, caller's memory",
             [&] { herring::all_gather(reduce, std::span<float const>(mine), all); }}};
        take_turns(bench::team_of(world), opt, bytes, rows);
    }
}

/// One tensor, by a step or as a buffer. Each has memory of its own: what lies in which pages differs from launch to launch.
template <class Reducer> void forms(herring::world& world, bench::options const& opt) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        Reducer reduce{world, herring::layout{{"tensor", n}}};
        std::vector<float> buffer(n, 1), lent(n, 1);
        std::fill(reduce.tensor(0).begin(), reduce.tensor(0).end(), 1.0f);
        contender rows[] = {{"step, in place",
                             [&] {
                                 reduce.ready(0);
                                 reduce.wait();
                             }},
                            {"all_reduce, caller's memory", [&] { reduce.all_reduce(std::span(buffer)); }},
                            {"step, caller's memory", [&] {
                                 reduce.ready(0, std::span(lent));
                                 reduce.wait();
                             }}};
        take_turns(bench::team_of(world), opt, bytes, rows);
    }
}

/// A reducer with one rule, one of five by the same rule, and another one with one: of two equal reducers the one that was constructed
/// later may be slower, for its memory lies elsewhere. All read and write one buffer.
template <class One, class Five> void rules(herring::world& world, bench::options const& opt) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        One one{world};
        Five five{world};
        One again{world};
        std::vector<float> buffer(n, 1), part(one.owned(n).elements);
        std::span<float> const x(buffer), mine(part);
        herring::update::average const by{};
        contender reduced[] = {{"all_reduce, one rule", [&] { one.all_reduce(x); }},
                               {"all_reduce, one of five", [&] { five.all_reduce(x, by); }},
                               {"all_reduce, one rule again", [&] { again.all_reduce(x); }}};
        take_turns(bench::team_of(world), opt, bytes, reduced);
        contender scattered[] = {
            {"reduce_scatter, one rule", [&] { herring::reduce_scatter(one, x, mine); }},
            {"reduce_scatter, one of five", [&] { herring::reduce_scatter(five, x, mine, by); }},
            {"reduce_scatter, one rule again", [&] { herring::reduce_scatter(again, x, mine); }}};
        take_turns(bench::team_of(world), opt, bytes, scattered);
    }
}

/// Mean and deviation over all ranks from one std::vector into two others: by all_moments, and as a program has them without it.
template <class Reducer> void moments(herring::world& world, bench::options const& opt) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        Reducer reduce{world};
        std::vector<float> in(n), mean(n), deviation(n);
        float largest = 0;
        auto const row = [&](char const* what, bench::candidate by) {
            bench::operation op{what, bytes, {}, true, {std::move(by)}};
            op.kind = bench::pattern::all_moments;
            op.in = {{in, 0}};
            op.out = {{mean, 0}};
            bench::measure(bench::team_of(world), opt, op);
        };
        row("Herring, all_moments",
            {"all_moments",
             [&] { largest = herring::all_moments(reduce, in, mean, deviation).largest_deviation; }});
        row("two all_reduces", {"all_reduce", [&] {
                                    reduce.all_reduce(in, mean);
                                    for (std::size_t i = 0; i < n; ++i) {
                                        float const off = in[i] - mean[i];
                                        deviation[i] = off * off;
                                    }
                                    reduce.all_reduce(deviation);
                                    largest = 0;
                                    for (float& x : deviation) {
                                        x = std::sqrt(x);
                                        if (!(x <= largest)) largest = x;
                                    }
                                }});
        row("one all_reduce", {"all_reduce", [&] { reduce.all_reduce(in, mean); }});
        if (largest < 0) std::abort(); // it is read
    }
}

template <class Reducer>
void table(herring::world& world, bench::options const& opt, std::string const& path) {
    auto const counts = bench::read_table(path);
    Reducer reduce{world, herring::layout::of(counts)};
    if (opt.text("memory", "in_place") == "in_place") {
        std::vector<std::span<float>> tensors;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            tensors.push_back(reduce.tensor(i));
            bytes += tensors.back().size_bytes();
        }
        auto const run = [&] {
            for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
            reduce.wait();
        };
        bench::measure(
            bench::team_of(world), opt,
            {"Herring, in place", bytes, tensors, true, {{"ready + wait", run}}, bench::table_name(path)});
    } else {
        bench::table_memory memory(counts);
        auto const run = [&] {
            for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i, memory.tensors[i]);
            reduce.wait();
        };
        bench::measure(bench::team_of(world), opt,
                       {"Herring, caller's memory",
                        memory.bytes,
                        memory.tensors,
                        true,
                        {{"ready(i, span) + wait", run}},
                        bench::table_name(path)});
    }
}

/// The CPU that rank 0 uses while it waits for the last rank, which comes `seconds` late.
template <class Reducer>
void late(herring::world& world, bench::options const& opt, double seconds, char const* what) {
    Reducer reduce{world, herring::layout{{"tensor", 1024}}};
    auto const ranks = bench::team_of(world);
    auto const step = [&] {
        reduce.ready(0);
        reduce.wait();
    };
    step();
    ranks.barrier();
    if (ranks.rank + 1 == ranks.size) ::usleep(static_cast<useconds_t>(seconds * 1e6));
    double const cpu = bench::cpu_seconds(), start = bench::now_us();
    step();
    double const used = bench::cpu_seconds() - cpu, waited = (bench::now_us() - start) * 1e-6;
    if (ranks.rank == 0)
        if (std::FILE* out = std::fopen(opt.text("out", "/dev/stdout").c_str(), "a")) {
            std::fprintf(
                out, "{\"suite\":\"wait\",\"what\":\"%s\",\"ranks\":%d,\"waited_s\":%.3f,\"cpu_s\":%.6f}\n",
                what, ranks.size, waited, used);
            std::fclose(out);
        }
    ranks.barrier();
}

using herring::transport::checked;
using herring::transport::tcp;
using herring::transport::tcp_over_slow_links;
using herring::update::average;
using herring::waiting::adaptive;
using herring::waiting::block;
using herring::waiting::spin;
using memory = herring::intra_node::shared_memory;

template <class Waiting> void uneven(herring::world& world, bench::options const& opt, char const* what) {
    if (world.size() > 2 && std::is_same_v<Waiting, spin>)
        return; // more ranks than cores: it is not for that
    herring::reducer<double, tcp, memory, herring::update::sum, Waiting> reduce{world};
    double x = 1;
    bench::uneven(bench::team_of(world), opt, what, [&] { reduce.all_reduce(std::span(&x, 1)); });
}

int run(herring::world& world, bench::options const& opt) {
    bench::pin(opt, world.rank());
    using by_memory = herring::reducer<float, tcp, memory, average>;
    using by_tcp = herring::reducer<float, tcp, average>;
    using by_slow_tcp = herring::reducer<float, tcp_over_slow_links, average>;
    bool const slow = opt.text("links", "fast") == "slow";
    bool const shared = opt.text("node", "none") == "shared_memory";
    if (auto const provider = opt.text("provider"); !provider.empty()) {
#ifdef BENCH_WITH_OFI
        using herring::transport::ofi;
        if (provider == "tcp")
            sweep<herring::reducer<float, ofi<herring::provider::tcp>, average>>(world, opt,
                                                                                 "Herring, ofi<tcp>");
        else if (provider == "shm")
            sweep<herring::reducer<float, ofi<herring::provider::shm>, average>>(world, opt,
                                                                                 "Herring, ofi<shm>");
        else
            return 2;
#else
        std::fprintf(stderr, "herring_bench: built without libfabric\n");
        return 2;
#endif
    } else if (double const seconds = opt.number("late", 0); seconds > 0) {
        late<by_memory>(world, opt, seconds, "shared_memory, adaptive");
        late<herring::reducer<float, tcp, memory, average, block>>(world, opt, seconds,
                                                                   "shared_memory, block");
        late<by_tcp>(world, opt, seconds, "tcp, adaptive");
        late<herring::reducer<float, tcp, average, block>>(world, opt, seconds, "tcp, block");
    } else if (opt.number("uneven", 0) > 0) {
        uneven<adaptive>(world, opt, "Herring, adaptive");
        uneven<spin>(world, opt, "Herring, spin");
        uneven<block>(world, opt, "Herring, block");
    } else if (auto const path = opt.text("table"); !path.empty()) {
        if (shared)
            table<by_memory>(world, opt, path);
        else if (slow)
            table<by_slow_tcp>(world, opt, path);
        else
            table<by_tcp>(world, opt, path);
    } else if (opt.text("operation") == "shares") {
        if (shared)
            shares<by_memory>(world, opt);
        else if (slow)
            shares<by_slow_tcp>(world, opt);
        else
            shares<by_tcp>(world, opt);
    } else if (opt.text("operation") == "forms") {
        if (shared)
            forms<by_memory>(world, opt);
        else if (slow)
            forms<by_slow_tcp>(world, opt);
        else
            forms<by_tcp>(world, opt);
    } else if (opt.text("operation") == "rules") {
        using five = herring::update::any<herring::update::sum, herring::update::min, herring::update::max,
                                          herring::update::product, average>;
        if (shared)
            rules<by_memory, herring::reducer<float, tcp, memory, five>>(world, opt);
        else
            rules<by_tcp, herring::reducer<float, tcp, five>>(world, opt);
    } else if (opt.text("operation") == "all_moments") {
        if (shared)
            moments<herring::reducer<float, tcp, memory, herring::update::moments>>(world, opt);
        else if (slow)
            moments<herring::reducer<float, tcp_over_slow_links, herring::update::moments>>(world, opt);
        else
            moments<herring::reducer<float, tcp, herring::update::moments>>(world, opt);
    } else if (auto const kind = bench::pattern_of(opt); kind != bench::pattern::all_reduce) {
        if (shared)
            sweep<by_memory>(world, opt, kind);
        else if (slow)
            sweep<by_slow_tcp>(world, opt, kind);
        else
            sweep<by_tcp>(world, opt, kind);
    } else if (opt.text("links", "fast") == "checked") {
        sweep<herring::reducer<float, checked<tcp>, average>>(world, opt, "Herring, checked<tcp>");
    } else if (opt.text("links", "fast") == "sealed") {
#ifdef BENCH_WITH_SEALED
        sweep<herring::reducer<float, herring::transport::sealed<tcp>, average>>(world, opt,
                                                                                 "Herring, sealed<tcp>");
#else
        std::fprintf(stderr, "herring_bench: built without libcrypto\n");
        return 2;
#endif
    } else {
        if (shared)
            sweep<by_memory>(world, opt);
        else if (slow)
            sweep<by_slow_tcp>(world, opt);
        else
            sweep<by_tcp>(world, opt);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    if (auto const n = static_cast<int>(opt.number("ranks", 0)))
        return herring::launch(n, [&](herring::world& world) { return run(world, opt); });
    try {
        herring::world world = herring::join();
        return run(world, opt);
    } catch (herring::error const& failed) {
        std::fprintf(stderr, "herring_bench: %s\n", failed.what());
        return 1;
    }
}
