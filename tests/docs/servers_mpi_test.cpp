// herring: docs/launching.md: servers in an MPI job, beside sums over its communicators.
// SPDX-License-Identifier: Apache-2.0
// Runs as a single process and under `mpirun -n 2|3|4`.
#include "herring/checkpoint.hpp"
#include "herring/herring.hpp"
#include "herring/join/mpi.hpp"
#include "herring/mpi/reduce.hpp"
#include "herring/mpi/src.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/serve.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"
#include "herring/waiting/mpi.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>

namespace {

// [snippet servers]
using trainer = herring::reducer<float, herring::transport::tcp, herring::placement::dedicated,
                                 herring::optimizer::adamw, herring::waiting::mpi>;

/// Between MPI_Init and MPI_Finalize; returns the sum of what the workers found, on a worker.
double train_with_servers(int steps) {
    herring::join_options options;
    options.on_failure = [](herring::failure const&) { MPI_Abort(MPI_COMM_WORLD, 1); };
    herring::world world = herring::join(MPI_COMM_WORLD, options); // HERRING_ROLE says who serves
    bool const serves = world.role() == herring::role::server;
    MPI_Comm same_role;
    MPI_Comm_split(MPI_COMM_WORLD, serves ? 1 : 0, 0, &same_role);
    herring::layout const layout{{"weight", 10'000}, {"bias", 10}};
    double total = 0;
    if (serves) {
        herring::serve<trainer>(world, layout);
    } else {
        trainer train(world, layout);
        train.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 0.5f); });
        for (int step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < train.size(); ++i) {
                std::ranges::fill(train.tensor(i), 0.1f);
                train.ready(i);
            }
            train.wait();
            total = herring::mpi::sum(1.0, same_role); // of workers: servers are in `serve`
        }
    }
    MPI_Comm_free(&same_role);
    return total;
}
// [end]

} // namespace

TEST_CASE("servers in an MPI job: workers sum among themselves, and all ranks before and after") {
    // As «mpirun -n W program : -n 1 -x HERRING_ROLE=server program» has it.
    MPI_Init(nullptr, nullptr);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool const serves = rank > 0 && rank == size - 1;
    if (serves) ::setenv("HERRING_ROLE", "server", 1);
    if (size > 1) {
        CHECK(herring::mpi::sum(1) == size);
        CHECK(train_with_servers(3) == (serves ? 0 : size - 1));
        CHECK(herring::mpi::sum(1) == size);
    }
    MPI_Finalize();
}
