// herring: all_moments by ranks that an MPI communicator names, of which two share a node.
// SPDX-License-Identifier: Apache-2.0
// Runs as a single process and under `mpirun -n 2|3|4`.
#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join/mpi.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace {

/// MPI lasts until the process ends: it cannot be started twice.
struct mpi_session {
    mpi_session() { MPI_Init(nullptr, nullptr); }
    ~mpi_session() { MPI_Finalize(); }
};

using committee = herring::reducer<double, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::update::moments>;

} // namespace

TEST_CASE("moments: MPI and all_moments agree about mean and deviation, and all ranks about the largest") {
    static mpi_session const session;
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    herring::join_options options;
    options.node = "node " + std::to_string(rank / 2); // so that bytes go by TCP as well
    herring::world world = herring::join(MPI_COMM_WORLD, options);
    committee reduce(world);
    for (std::size_t const n : {1u, 300u, 20'000u, 300'001u}) {
        std::vector<double> mine(n), sums(n), squares(n), mean(n), deviation(n);
        for (std::size_t i = 0; i < n; ++i)
            mine[i] = static_cast<double>((i * 37 + static_cast<std::size_t>(rank) * 11) % 97);
        auto const count = static_cast<int>(n);
        MPI_Allreduce(mine.data(), sums.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < n; ++i) {
            double const off = mine[i] - sums[i] / ranks;
            squares[i] = off * off;
        }
        MPI_Allreduce(MPI_IN_PLACE, squares.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        auto const told = herring::all_moments(reduce, mine, mean, deviation);
        int wrong = 0;
        for (std::size_t i = 0; i < n; ++i)
            wrong += std::fabs(mean[i] - sums[i] / ranks) > 1e-12 ||
                     std::fabs(deviation[i] - std::sqrt(squares[i] / ranks)) > 1e-12;
        CHECK(wrong == 0);
        CHECK(told.largest_deviation == *std::max_element(deviation.begin(), deviation.end()));
        double least = told.largest_deviation, most = told.largest_deviation;
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        CHECK(least == most);
    }
}
