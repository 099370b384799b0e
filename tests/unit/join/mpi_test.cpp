// herring: joining inside an MPI program.
// SPDX-License-Identifier: Apache-2.0
// Runs as a single process and under `mpirun -n 2|3|4`.
#include "herring/join/mpi.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace {

/// MPI lasts until the process ends: it cannot be started twice.
struct mpi_session {
    mpi_session() {
        int ready = 0;
        MPI_Initialized(&ready);
        if (ready == 0) MPI_Init(nullptr, nullptr);
    }
    ~mpi_session() {
        int over = 0;
        MPI_Finalized(&over);
        if (over == 0) MPI_Finalize();
    }
};

void start_mpi() { static mpi_session const session; }

} // namespace

TEST_CASE("join by MPI: before MPI_Init it is an error, and not MPI's abort") {
    int begun = 0;
    MPI_Initialized(&begun);
    REQUIRE(begun == 0); // the first test
    try {
        herring::join(MPI_COMM_WORLD);
        FAIL("it joined");
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::bad_state);
        CHECK(std::string(why.what()).find("MPI_Init has not been called") != std::string::npos);
    }
}

TEST_CASE("join by MPI: ranks are those of the communicator, and its world works without it") {
    start_mpi();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    herring::world world = herring::join(MPI_COMM_WORLD);
    CHECK(world.rank() == rank);
    CHECK(world.size() == size);
    CHECK(world.nodes() == 1);
    CHECK(world.local_rank() == rank);
    auto const all = world.all_gather(std::as_bytes(std::span(&rank, 1)));
    REQUIRE(static_cast<int>(all.size()) == size);
    for (int r = 0; r < size; ++r) {
        int theirs = -1;
        REQUIRE(all[static_cast<std::size_t>(r)].size() == sizeof theirs);
        std::memcpy(&theirs, all[static_cast<std::size_t>(r)].data(), sizeof theirs);
        CHECK(theirs == r);
    }
    world.barrier();
}

TEST_CASE("join by MPI: a part of the ranks is a world of its own, in the order of its communicator") {
    start_mpi();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, size - rank, &half); // backwards
    int half_rank = 0;
    MPI_Comm_rank(half, &half_rank);
    herring::join_options options;
    options.node = "node " + std::to_string(half_rank / 2);
    herring::world world = herring::join(half, options);
    CHECK(world.rank() == half_rank);
    CHECK(world.node() == half_rank / 2);
    world.barrier();
    MPI_Comm_free(&half);
}

TEST_CASE("join by MPI: options reach the world, and on_failure every rank") {
    start_mpi();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::atomic<int> calls{0};
    herring::join_options options;
    options.on_failure = [&](herring::failure const&) { calls.fetch_add(1); };
    options.default_timeout = std::chrono::seconds(20);
    if (rank == 0) options.failure_detector.peer_timeout = std::chrono::seconds(9);
    {
        herring::world world = herring::join(MPI_COMM_WORLD, options);
        CHECK(world.default_timeout() == std::chrono::seconds(20));
        CHECK(world.peer_timeout() == std::chrono::seconds(9));
        world.barrier();
        if (rank == size - 1)
            world.fail(herring::failure::make(herring::errc::device, rank, -1, "test", "on purpose"));
        auto const until = herring::clock::now() + std::chrono::seconds(20);
        while (calls.load() == 0 && herring::clock::now() < until) sched_yield(); // in no call of Herring's
        CHECK(calls.load() == 1);
    }
    CHECK(calls.load() == 1);
}

TEST_CASE("join by MPI: one rank's interface that is not there is an error on every rank") {
    start_mpi();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    herring::join_options options;
    if (rank == size - 1) options.interface = "no-such-interface";
    try {
        herring::join(MPI_COMM_WORLD, options);
        FAIL("it joined");
    } catch (herring::error const& why) {
        if (rank == size - 1) {
            CHECK(why.code() == herring::errc::unreachable);
        } else {
            CHECK(why.code() == herring::errc::peer_failed);
            CHECK(why.peer() == size - 1);
        }
    }
}

TEST_CASE("join by MPI: HERRING_ADDR serves one communicator, and a second one is told so") {
    start_mpi();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) return; // alone nobody listens
    int port = free_port();
    MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD);
    ::setenv("HERRING_ADDR", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
    {
        herring::world first = herring::join(MPI_COMM_WORLD);
        try {
            herring::join(MPI_COMM_WORLD);
            FAIL("it joined");
        } catch (herring::error const& why) {
            CHECK(why.code() == (rank == 0 ? herring::errc::no_resources : herring::errc::peer_failed));
            CHECK(std::string(why.what()).find("several communicators leaves HERRING_ADDR out") !=
                  std::string::npos);
        }
        ::unsetenv("HERRING_ADDR");
        herring::world second = herring::join(MPI_COMM_WORLD);
        second.barrier();
        first.barrier();
    }
}

TEST_CASE(
    "join by MPI: where no rank has a secret, MPI hands one out; one that some have is refused on all") {
    start_mpi();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    {
        herring::world const world = herring::join(MPI_COMM_WORLD, {.require_secret = true});
        CHECK(world.has_secret());
    }
    herring::join_options options;
    options.secret = std::string(64, 'c');
    {
        herring::world world = herring::join(MPI_COMM_WORLD, options);
        CHECK(world.has_secret());
        world.barrier();
    }
    if (size == 1) return;
    if (rank == 0) options.secret.reset();
    try {
        herring::join(MPI_COMM_WORLD, options);
        FAIL("it joined");
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::mismatch);
        CHECK(std::string(why.what())
                  .find(rank == 0 ? "it has a secret, this rank has none"
                                  : "it has no secret, this rank has one") != std::string::npos);
    }
}
