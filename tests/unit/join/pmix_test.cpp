// herring: joining in a job whose launcher is a PMIx server.
// SPDX-License-Identifier: Apache-2.0
// Runs under `mpirun -n 1|2|3|4`, without Open MPI's own variables (tests/pmix_only.sh), and with ranks of two programs.
#include "herring/join/pmix.hpp"

#include "doctest/doctest.h"
#include "herring/herring.hpp"
#include "herring/join/join.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

using herring::errc;
using herring::failure;

namespace {

/// By the launcher's variable and the test's.
int rank() { return std::atoi(std::getenv("PMIX_RANK")); }
int size() { return std::atoi(std::getenv("HERRING_TEST_RANKS")); }

failure error_of(herring::join_options const& options = {}) {
    try {
        herring::join_pmix(options);
    } catch (herring::error const& why) {
        return why.why();
    }
    return {};
}

bool says(failure const& why, std::string_view words) {
    return std::string_view(why.text).find(words) != std::string_view::npos;
}

/// Runs `work` in a process of its own; returns its result. PMIx keeps the first environment that it sees.
template <class Work> int apart(Work&& work) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(work());
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("join by PMIx: without a server it is an error, and not a world of one") { // the first test
    CHECK(apart([] {
              ::unsetenv("PMIX_NAMESPACE");
              failure const why = error_of();
              return why.what == errc::unreachable && says(why, "PMIX_NAMESPACE is not set") &&
                             says(why, "srun --mpi=pmix")
                         ? 0
                         : 1;
          }) == 0);
    CHECK(apart([] {
              std::string const job = std::getenv("PMIX_NAMESPACE"), number = std::getenv("PMIX_RANK");
              ::clearenv();
              ::setenv("PMIX_NAMESPACE", job.c_str(), 1);
              ::setenv("PMIX_RANK", number.c_str(), 1);
              ::setenv("PMIX_SERVER_URI41", "1.0;tcp4://127.0.0.1:1", 1); // nobody listens there
              failure const why = error_of();
              return why.what == errc::unreachable && says(why, "PMIx_Init failed: ") ? 0 : 1;
          }) == 0);
}

TEST_CASE("join by PMIx: join() says that there is join_pmix()") {
    if (rank() == 0) return; // it cannot be told from a process that MPI_Init has left alone
    try {
        herring::join();
        FAIL("it joined");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::bad_argument);
        CHECK(std::string(why.what()).find("call herring::join_pmix()") != std::string::npos);
    }
}

TEST_CASE("join by PMIx: ranks are those of the job, worlds work side by side and without PMIx, and reduce") {
    herring::world world = herring::join_pmix();
    CHECK(world.rank() == rank());
    CHECK(world.size() == size());
    CHECK(world.has_secret());
    CHECK(world.nodes() == 1);
    herring::join_options options;
    options.node = "node " + std::to_string(rank());
    options.require_secret = true; // PMIx's is one
    herring::world apart = herring::join_pmix(options);
    CHECK(apart.nodes() == size());
    for (herring::world* const each : {&world, &apart}) {
        herring::reducer<std::int64_t, herring::transport::tcp, herring::update::sum> reduce(*each);
        CHECK(reduce.all_reduce(std::int64_t{rank() + 1}) == size() * (size() + 1) / 2);
    }
}

TEST_CASE("join by PMIx: one rank's interface that is not there is an error on every rank") {
    herring::join_options options;
    if (rank() == size() - 1) options.interface = "no-such-interface";
    failure const why = error_of(options);
    if (rank() == size() - 1) {
        CHECK(why.what == errc::unreachable);
    } else {
        CHECK(why.what == errc::peer_failed);
        CHECK(why.peer == size() - 1);
    }
    herring::join_pmix().barrier(); // all can try again
}

TEST_CASE("join by PMIx: a rank that does not call it is named at the deadline") { // the last but one
    herring::world world = herring::join_pmix();
    if (rank() != size() - 1) {
        herring::join_options options;
        options.timeout = std::chrono::milliseconds(1'500);
        failure const why = error_of(options);
        CAPTURE(why.message());
        CHECK(why.what == errc::timeout);
        CHECK(why.peer == size() - 1);
        CHECK(says(why, "not every process of the PMIx job has called join_pmix() within 1500 ms"));
    }
    world.barrier();
}

TEST_CASE("join by PMIx: a process that was forked off after a join is no rank") {
    CHECK(apart([] {
              failure const why = error_of();
              return why.what == errc::bad_state && says(why, "was forked off") ? 0 : 1;
          }) == 0);
}
