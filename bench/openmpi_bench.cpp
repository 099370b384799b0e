// herring: Open MPI in the bench: MPI_Allreduce in place, gradient tables behind DDP's buckets, with AdamW on every rank or without,
// and three other collectives.
// SPDX-License-Identifier: Apache-2.0
//
//   mpirun -n 4 openmpi_bench --suite tcp (--sizes 8,1024 | --table FILE.csv) [--out FILE]
//     [--operation reduce_scatter|all_gather|broadcast|all_to_all|gather|scatter] [--adamw 1, of a table] [harness.hpp's options]
#include "adamw_replica.hpp"
#include "harness.hpp"

#include <mpi.h>

namespace {

void all_reduce(std::span<float> x) {
    MPI_Allreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

void sweep(bench::team const& ranks, bench::options const& opt) {
    for (auto bytes : opt.sizes()) {
        std::vector<float> memory(bytes / sizeof(float));
        std::span<float> const x(memory);
        bench::measure(
            ranks, opt,
            {opt.text("name", "Open MPI"), bytes, {x}, false, {{"MPI_Allreduce", [x] { all_reduce(x); }}}});
    }
}

/// MPI_Reduce_scatter_block, MPI_Allgather, MPI_Bcast, MPI_Alltoall, MPI_Gather or MPI_Scatter over equal blocks.
void sweep(bench::team const& ranks, bench::options const& opt, bench::pattern kind) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        bench::collective_memory memory(kind, ranks.rank, ranks.size, n,
                                        [&](int r) { return bench::block_of(r, ranks.size, n); });
        float *const whole = memory.whole.data(), *const part = memory.part.data();
        int const all = static_cast<int>(n),
                  block = static_cast<int>(memory.owned[static_cast<std::size_t>(ranks.rank)].memory.size());
        auto const reduce_scatter = [=] {
            MPI_Reduce_scatter_block(whole, part, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        };
        auto const all_gather = [=] {
            MPI_Allgather(part, block, MPI_FLOAT, whole, block, MPI_FLOAT, MPI_COMM_WORLD);
        };
        auto const broadcast = [=] { MPI_Bcast(whole, all, MPI_FLOAT, 0, MPI_COMM_WORLD); };
        std::vector<bench::candidate> candidates;
        if (kind == bench::pattern::reduce_scatter)
            candidates = {{"MPI_Reduce_scatter_block", reduce_scatter}};
        else if (kind == bench::pattern::all_gather)
            candidates = {{"MPI_Allgather", all_gather}};
        else if (kind == bench::pattern::all_to_all)
            candidates = {{"MPI_Alltoall", [=] {
                               MPI_Alltoall(whole, block, MPI_FLOAT, part, block, MPI_FLOAT, MPI_COMM_WORLD);
                           }}};
        else if (kind == bench::pattern::gather)
            candidates = {{"MPI_Gather", [=] {
                               MPI_Gather(part, block, MPI_FLOAT, whole, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
                           }}};
        else if (kind == bench::pattern::scatter)
            candidates = {
                {"MPI_Scatter",
                 [=] { MPI_Scatter(whole, block, MPI_FLOAT, part, block, MPI_FLOAT, 0, MPI_COMM_WORLD); }}};
        else
            candidates = {{"MPI_Bcast", broadcast}};
        bench::measure(ranks, opt, memory.row(opt.text("name", "Open MPI"), false, candidates));
    }
}

void table(bench::team const& ranks, bench::options const& opt, std::string const& path) {
    bench::table_memory memory(bench::read_table(path));
    bench::ddp_buckets buckets(memory.tensors, ranks.size);
    std::vector<MPI_Request> requests(buckets.size());
    auto const blocking = [&] {
        buckets.run([](std::size_t, std::span<float> x) { all_reduce(x); }, [](std::size_t) {});
    };
    auto const overlapped = [&] {
        buckets.run(
            [&](std::size_t b, std::span<float> x) {
                MPI_Iallreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD, &requests[b]);
            },
            [&](std::size_t b) { MPI_Wait(&requests[b], MPI_STATUS_IGNORE); });
    };
    bench::measure(ranks, opt,
                   {opt.text("name", "Open MPI") + ", 25 MiB buckets",
                    memory.bytes,
                    memory.tensors,
                    true,
                    {{"MPI_Allreduce", blocking}, {"MPI_Iallreduce", overlapped}},
                    bench::table_name(path)});
}

/// A step of training_bench's by Open MPI: the gradients of a table reduced behind DDP's buckets, then AdamW on every rank.
void training(bench::team const& ranks, bench::options const& opt, std::string const& path) {
    bench::table_memory memory(bench::read_table(path));
    bench::ddp_buckets buckets(memory.tensors, ranks.size);
    std::vector<MPI_Request> requests(buckets.size());
    std::vector<std::size_t> counts;
    for (auto const& t : memory.tensors) counts.push_back(t.size());
    bench::adamw_replica own(counts);
    auto const update = [&] {
        own.begin_step();
        for (std::size_t i = 0; i < counts.size(); ++i) own.update(i, memory.tensors[i].data());
    };
    auto const blocking = [&] {
        buckets.run([](std::size_t, std::span<float> x) { all_reduce(x); }, [](std::size_t) {});
        update();
    };
    auto const overlapped = [&] {
        buckets.run(
            [&](std::size_t b, std::span<float> x) {
                MPI_Iallreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_FLOAT, MPI_SUM,
                               MPI_COMM_WORLD, &requests[b]);
            },
            [&](std::size_t b) { MPI_Wait(&requests[b], MPI_STATUS_IGNORE); });
        update();
    };
    auto const rounds = std::max(3, static_cast<int>(opt.number("rounds", 15)));
    auto const timed = [&](auto const& step) {
        std::vector<double> us;
        for (int round = 0; round <= rounds; ++round) { // the first one warms up
            for (std::size_t i = 0; i < counts.size(); ++i)
                bench::write_gradient(i, memory.tensors[i], ranks.rank, round);
            ranks.barrier();
            double const start = bench::now_us();
            step();
            double const one = ranks.max(bench::now_us() - start);
            if (round > 0) us.push_back(one);
        }
        std::sort(us.begin(), us.end());
        return us[us.size() / 2];
    };
    double const us = std::min(timed(blocking), timed(overlapped));
    if (ranks.rank != 0) return;
    std::printf("%-11s %d ranks: %s, reduced and then updated by every rank %8.2f ms\n",
                bench::table_name(path).c_str(), ranks.size, opt.text("name", "Open MPI").c_str(), us / 1e3);
    if (std::FILE* const out = opt.text("out").empty() ? nullptr : std::fopen(opt.text("out").c_str(), "a")) {
        std::fprintf(out,
                     "{\"suite\":\"training\",\"what\":\"training\",\"peer\":\"%s\",\"table\":\"%s\","
                     "\"ranks\":%d,\"twin_us\":%.1f}\n",
                     opt.text("name", "Open MPI").c_str(), bench::table_name(path).c_str(), ranks.size, us);
        std::fclose(out);
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    bench::options const opt(argc, argv);
    bench::team ranks{};
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
    bench::pin(opt, ranks.rank);
    ranks.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
    ranks.gather = [&](std::vector<double> const& mine) {
        std::vector<double> all(mine.size() * static_cast<std::size_t>(ranks.size));
        int const n = static_cast<int>(mine.size());
        MPI_Allgather(mine.data(), n, MPI_DOUBLE, all.data(), n, MPI_DOUBLE, MPI_COMM_WORLD);
        return all;
    };
    if (double x = 1; opt.number("uneven", 0) > 0)
        bench::uneven(ranks, opt, opt.text("name", "Open MPI"),
                      [&x] { MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
    else if (auto const kind = bench::pattern_of(opt); kind != bench::pattern::all_reduce)
        sweep(ranks, opt, kind);
    else if (auto const path = opt.text("table"); path.empty())
        sweep(ranks, opt);
    else if (opt.number("adamw", 0) > 0)
        training(ranks, opt, path);
    else
        table(ranks, opt, path);
    MPI_Finalize();
}
