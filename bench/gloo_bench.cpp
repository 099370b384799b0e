// herring: Gloo's TCP transport in the bench: the fastest of its all-reduce algorithms, gradient tables behind DDP's buckets,
// and three other collectives.
// SPDX-License-Identifier: Apache-2.0
//
//   for each rank: gloo_bench --rank 0 --size 4 --store EMPTY_DIR --address 127.0.0.1 --suite tcp (--sizes
//   8,1024 | --table FILE.csv) [--out FILE]
//     [--operation reduce_scatter|all_gather|broadcast|all_to_all|gather|scatter] and harness.hpp's options
#include "harness.hpp"

#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

namespace {

using context = std::shared_ptr<gloo::Context>;
using algorithm = gloo::AllreduceOptions::Algorithm;

/// gloo::allreduce in place on `x`, prepared once: what PyTorch calls.
std::function<void()> prepared(context const& ctx, std::span<float> x, algorithm which) {
    auto opts = std::make_shared<gloo::AllreduceOptions>(ctx);
    opts->setAlgorithm(which);
    opts->setOutput(x.data(), x.size());
    opts->setReduceFunction(
        [](void* out, void const* a, void const* b, std::size_t n) { gloo::sum<float>(out, a, b, n); });
    return [opts] { gloo::allreduce(*opts); };
}

/// The older classes, which keep their buffers registered.
template <class Algorithm> std::function<void()> prepared(context const& ctx, std::span<float> x) {
    auto all = std::make_shared<Algorithm>(ctx, std::vector<float*>{x.data()}, static_cast<int>(x.size()));
    return [all] { all->run(); };
}

std::vector<bench::candidate> candidates(context const& ctx, std::span<float> x) {
    return {{"bcube", prepared(ctx, x, algorithm::BCUBE)},
            {"halving-doubling", prepared<gloo::AllreduceHalvingDoubling<float>>(ctx, x)},
            {"ring-chunked", prepared<gloo::AllreduceRingChunked<float>>(ctx, x)},
            {"ring", prepared(ctx, x, algorithm::RING)}};
}

void sweep(bench::team const& ranks, bench::options const& opt, context const& ctx) {
    for (auto bytes : opt.sizes()) {
        std::vector<float> memory(bytes / sizeof(float));
        std::span<float> const x(memory);
        bench::measure(ranks, opt, {"Gloo", bytes, {x}, false, candidates(ctx, x)});
    }
}

/// Gloo has no function for reduce-scatter: its older class works in place, and leaves the own block at the front; callers
/// whose input stays need a copy in and one out.
void sweep(bench::team const& ranks, bench::options const& opt, context const& ctx, bench::pattern kind) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        bench::collective_memory memory(kind, ranks.rank, ranks.size, n,
                                        [&](int r) { return bench::block_of(r, ranks.size, n); });
        std::span<float> const whole(memory.whole), part(memory.part);
        std::vector<float> scratch;
        std::vector<bench::candidate> candidates;
        if (kind == bench::pattern::reduce_scatter) {
            scratch.resize(n);
            auto halving = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
                ctx, std::vector<float*>{scratch.data()}, static_cast<int>(n),
                std::vector<int>(static_cast<std::size_t>(ranks.size), static_cast<int>(part.size())));
            candidates = {{"halving-doubling", [halving, whole, part, &scratch] {
                               std::copy(whole.begin(), whole.end(), scratch.begin());
                               halving->run();
                               std::copy_n(scratch.begin(), part.size(), part.begin());
                           }}};
        } else if (kind == bench::pattern::all_gather) {
            auto opts = std::make_shared<gloo::AllgatherOptions>(ctx);
            opts->setInput(part.data(), part.size());
            opts->setOutput(whole.data(), whole.size());
            candidates.push_back({"allgather", [opts] { gloo::allgather(*opts); }});
            auto ring = std::make_shared<gloo::AllgatherRing<float>>(
                ctx, std::vector<float const*>{part.data()}, whole.data(), static_cast<int>(part.size()));
            candidates.push_back({"allgather-ring", [ring] { ring->run(); }});
        } else if (kind == bench::pattern::all_to_all) {
            auto opts = std::make_shared<gloo::AlltoallOptions>(ctx);
            opts->setInput(whole.data(), whole.size());
            opts->setOutput(part.data(), part.size());
            candidates.push_back({"alltoall", [opts] { gloo::alltoall(*opts); }});
        } else if (kind == bench::pattern::gather) {
            auto opts = std::make_shared<gloo::GatherOptions>(ctx);
            opts->setInput(part.data(), part.size());
            opts->setOutput(whole.data(), whole.size());
            opts->setRoot(0);
            candidates.push_back({"gather", [opts] { gloo::gather(*opts); }});
        } else if (kind == bench::pattern::scatter) {
            auto opts = std::make_shared<gloo::ScatterOptions>(ctx);
            std::vector<float*> inputs;
            for (bench::piece const& one : memory.owned) inputs.push_back(one.memory.data());
            if (ranks.rank == 0) opts->setInputs(inputs, part.size());
            opts->setOutput(part.data(), part.size());
            opts->setRoot(0);
            candidates.push_back({"scatter", [opts] { gloo::scatter(*opts); }});
        } else {
            auto opts = std::make_shared<gloo::BroadcastOptions>(ctx);
            opts->setOutput(whole.data(), whole.size());
            opts->setRoot(0);
            candidates.push_back({"broadcast", [opts] { gloo::broadcast(*opts); }});
            auto to_all = std::make_shared<gloo::BroadcastOneToAll<float>>(
                ctx, std::vector<float*>{whole.data()}, whole.size(), 0);
            candidates.push_back({"one-to-all", [to_all] { to_all->run(); }});
        }
        bench::measure(ranks, opt, memory.row("Gloo", false, candidates));
    }
}

void table(bench::team const& ranks, bench::options const& opt, context const& ctx, std::string const& path) {
    bench::table_memory memory(bench::read_table(path));
    bench::ddp_buckets buckets(memory.tensors, ranks.size);
    std::vector<std::vector<bench::candidate>> of_bucket;
    for (std::size_t b = 0; b < buckets.size(); ++b) of_bucket.push_back(candidates(ctx, buckets.memory(b)));
    std::vector<bench::candidate> whole;
    for (std::size_t c = 0; c < of_bucket[0].size(); ++c)
        whole.push_back({of_bucket[0][c].name, [&buckets, &of_bucket, c] {
                             buckets.run([&](std::size_t b, std::span<float>) { of_bucket[b][c].run(); },
                                         [](std::size_t) {});
                         }});
    bench::measure(
        ranks, opt,
        {"Gloo, 25 MiB buckets", memory.bytes, memory.tensors, true, whole, bench::table_name(path)});
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    bench::team ranks{};
    ranks.rank = static_cast<int>(opt.number("rank", 0));
    ranks.size = static_cast<int>(opt.number("size", 1));

    gloo::transport::tcp::attr address;
    address.hostname = opt.text("address", "127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(address);
    gloo::rendezvous::FileStore store(opt.text("store"));
    auto const ctx = std::make_shared<gloo::rendezvous::Context>(ranks.rank, ranks.size);
    ctx->connectFullMesh(store, device);

    bench::pin(opt, ranks.rank); // its device's thread stays free

    gloo::BarrierOptions barrier(ctx);
    ranks.barrier = [&] { gloo::barrier(barrier); };
    ranks.gather = [&](std::vector<double> mine) {
        std::vector<double> all(mine.size() * static_cast<std::size_t>(ranks.size));
        gloo::AllgatherOptions opts(ctx);
        opts.setInput(mine.data(), mine.size());
        opts.setOutput(all.data(), all.size());
        gloo::allgather(opts);
        return all;
    };
    if (auto const kind = bench::pattern_of(opt); kind != bench::pattern::all_reduce)
        sweep(ranks, opt, ctx, kind);
    else if (auto const path = opt.text("table"); path.empty())
        sweep(ranks, opt, ctx);
    else
        table(ranks, opt, ctx, path);
    ranks.barrier();
}
