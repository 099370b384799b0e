// herring: worlds of several communicators side by side in one process: rows, columns and all, each with a reducer.
// SPDX-License-Identifier: Apache-2.0
// Runs as a single process and under `mpirun -n 2|3|4`.
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join/mpi.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace {

/// MPI lasts until the process ends: it cannot be started twice.
struct mpi_session {
    mpi_session() { MPI_Init(nullptr, nullptr); }
    ~mpi_session() {
        int over = 0;
        MPI_Finalized(&over);
        if (over == 0) MPI_Finalize();
    }
};

using sum_of_floats = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                       herring::update::sum>;

/// One communicator, its world and a reducer of its own.
struct group {
    MPI_Comm ranks = MPI_COMM_NULL;
    int size = 0;
    int sum_of_numbers = 0; // of all members, as MPI has it
    std::unique_ptr<herring::world> world;
    std::unique_ptr<sum_of_floats> reduce;

    group(MPI_Comm of, int number) : ranks(of) {
        MPI_Comm_size(ranks, &size);
        MPI_Allreduce(&number, &sum_of_numbers, 1, MPI_INT, MPI_SUM, ranks);
        herring::join_options options;
        int rank = 0;
        MPI_Comm_rank(ranks, &rank);
        options.node = "node " + std::to_string(rank / 2); // so that bytes go by TCP as well
        world = std::make_unique<herring::world>(herring::join(ranks, options));
        reduce = std::make_unique<sum_of_floats>(*world, herring::layout{{"small", 7}, {"large", 100'000}});
    }
    group(group const&) = delete;

    void step(int number, int round) {
        for (std::size_t i = 0; i < reduce->size(); ++i) {
            for (float& x : reduce->tensor(i)) x = static_cast<float>(number + round);
            reduce->ready(i);
        }
        reduce->wait();
        auto const due = static_cast<float>(sum_of_numbers + size * round);
        int wrong = 0;
        for (std::size_t i = 0; i < reduce->size(); ++i)
            for (float const x : reduce->tensor(i)) wrong += x != due;
        CHECK(wrong == 0);
    }
};

MPI_Comm split(int colour, int key) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, colour, key, &made);
    return made;
}

} // namespace

TEST_CASE("groups: rows, columns and all of a grid reduce side by side, and go on after MPI_Finalize") {
    static mpi_session const session;
    int number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    group all(MPI_COMM_WORLD, number);
    group row(split(number / 2, number), number);
    group column(split(number % 2, -number), number); // backwards
    CHECK(row.world->size() == row.size);
    CHECK(column.world->size() == column.size);
    for (int round = 0; round < 30; ++round) {
        row.step(number, round);
        column.step(number, round);
        if (round % 3 == 0) all.step(number, round);
    }
    MPI_Comm_free(&row.ranks);
    MPI_Comm_free(&column.ranks);
    MPI_Finalize();
    for (int round = 30; round < 33; ++round) {
        all.step(number, round);
        column.step(number, round);
        row.step(number, round);
    }
    try {
        herring::join(MPI_COMM_WORLD);
        FAIL("it joined");
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::bad_state);
        CHECK(std::string(why.what()).find("MPI_Finalize has been called") != std::string::npos);
    }
}
