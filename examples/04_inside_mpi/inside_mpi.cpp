// inside_mpi: gradients, extremes and sums of rows by plain MPI and by Herring, with the same results.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join/mpi.hpp>
#include <herring/transport/tcp.hpp>
#include <herring/update/any.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

constexpr std::size_t layers = 8;
constexpr std::size_t parameters = 50'000; // of a layer
constexpr int warm_up = 3;
constexpr int steps = 30;

using gradients_by_herring =
    herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory>;

/// Stands for the computation. Multiples of 1/8, so that every order of adding gives the same bits.
void backward(int rank, int step, std::size_t layer, float* gradient) {
    for (std::size_t i = 0; i < parameters; ++i)
        gradient[i] =
            static_cast<float>((static_cast<std::size_t>(rank + step) + layer * 31 + i) % 255) * 0.125f;
}

/// Plain MPI: compute everything, then reduce everything.
double with_mpi(MPI_Comm communicator, std::vector<float>& gradients) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    double begin = 0;
    for (int step = 0; step < warm_up + steps; ++step) {
        if (step == warm_up) begin = MPI_Wtime();
        for (std::size_t layer = 0; layer < layers; ++layer)
            backward(rank, step, layer, gradients.data() + layer * parameters);
        MPI_Allreduce(MPI_IN_PLACE, gradients.data(), static_cast<int>(gradients.size()), MPI_FLOAT, MPI_SUM,
                      communicator);
        for (float& x : gradients) x /= static_cast<float>(ranks);
    }
    return MPI_Wtime() - begin;
}

/// With Herring: each layer may leave as soon as it is there; averaging is the default.
double with_herring(herring::world& world, std::vector<float>& gradients) {
    gradients_by_herring reduce(world, herring::layout::of(std::vector<std::size_t>(layers, parameters)));
    double begin = 0;
    for (int step = 0; step < warm_up + steps; ++step) {
        if (step == warm_up) begin = MPI_Wtime();
        for (std::size_t layer = 0; layer < layers; ++layer) {
            backward(world.rank(), step, layer, reduce.tensor(layer).data());
            reduce.ready(layer);
        }
        reduce.wait();
    }
    double const seconds = MPI_Wtime() - begin;
    for (std::size_t layer = 0; layer < layers; ++layer)
        for (std::size_t i = 0; i < parameters; ++i)
            gradients[layer * parameters + i] = reduce.tensor(layer)[i];
    return seconds;
}

/// The least and the greatest value of all ranks, and the sum over the ranks of a row of a grid with `columns`
/// ranks a row.
struct facts_of_field {
    double least, greatest, row_sum;
    bool operator==(facts_of_field const&) const = default;
};

facts_of_field facts_with_mpi(MPI_Comm communicator, int columns, double mine) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    facts_of_field facts{};
    MPI_Allreduce(&mine, &facts.least, 1, MPI_DOUBLE, MPI_MIN, communicator);
    MPI_Allreduce(&mine, &facts.greatest, 1, MPI_DOUBLE, MPI_MAX, communicator);
    MPI_Comm row = MPI_COMM_NULL;
    MPI_Comm_split(communicator, rank / columns, rank, &row);
    MPI_Allreduce(&mine, &facts.row_sum, 1, MPI_DOUBLE, MPI_SUM, row);
    MPI_Comm_free(&row);
    return facts;
}

/// A call names its rule, as it names an MPI_Op; a group of ranks is a world, as it is a communicator.
facts_of_field facts_with_herring(herring::world& world, int columns, double mine) {
    namespace update = herring::update;
    using reducer_of_double =
        herring::reducer<double, herring::transport::tcp, herring::intra_node::shared_memory,
                         update::any<update::sum, update::min, update::max>>;
    reducer_of_double all(world);
    herring::world row = world.split(world.rank() / columns, world.rank());
    reducer_of_double of_row(row);
    return {.least = all.all_reduce(mine, update::min{}),
            .greatest = all.all_reduce(mine, update::max{}),
            .row_sum = of_row.all_reduce(mine, update::sum{})};
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try {
        std::vector<float> by_mpi(layers * parameters), by_herring(layers * parameters);
        double const mpi_seconds = with_mpi(MPI_COMM_WORLD, by_mpi);
        // MPI says who is who; the bytes then travel by TCP and shared memory.
        herring::world world = herring::join(MPI_COMM_WORLD);
        double const herring_seconds = with_herring(world, by_herring);

        double const field = 0.125 * ((rank * 5 + 3) % 7);
        int const columns = ranks % 2 == 0 ? 2 : 1;
        facts_of_field const facts = facts_with_herring(world, columns, field);
        int differs = by_mpi != by_herring || facts != facts_with_mpi(MPI_COMM_WORLD, columns, field);
        MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) {
            std::printf("field from %g to %g, first row of the grid %g\n", facts.least, facts.greatest,
                        facts.row_sum);
            std::printf("%d ranks, %zu floats, %d steps\n", ranks, by_mpi.size(), steps);
            std::printf("plain MPI     %8.0f us a step, computing included\n", mpi_seconds / steps * 1e6);
            std::printf("with Herring  %8.0f us a step, computing included\n", herring_seconds / steps * 1e6);
            std::printf("results %s\n", differs == 0 ? "equal, bit by bit, on every rank" : "DIFFER");
        }
        MPI_Finalize();
        return differs == 0 ? 0 : 1;
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
