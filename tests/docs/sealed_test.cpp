// herring: the sealed program of docs/deploying.md, at work.
// SPDX-License-Identifier: Apache-2.0
#include "doctest/doctest.h"

// [snippet program]
#include <herring/herring.hpp>
#include <herring/join/sealed.hpp>
#include <herring/transport/sealed.hpp>
#include <herring/transport/tcp.hpp>

#include <cstdio>

using secret_sum = herring::reducer<float, herring::transport::sealed<herring::transport::tcp>>;

float average_rank(herring::world& world) {
    secret_sum reduce(world, {{"weight", 1000}});
    for (float& x : reduce.tensor(0)) x = static_cast<float>(world.rank());
    reduce.ready(0);
    reduce.wait();
    return reduce.tensor(0)[999];
}

int run() {
    herring::world world = herring::join({.control = herring::sealed_control(), .require_secret = true});
    std::printf("rank %d: %.1f\n", world.rank(), static_cast<double>(average_rank(world)));
    return 0;
}
// [end]

#include <herring/launch.hpp>

#include "free_port.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

TEST_CASE("security: the program joins sealed, with the secret of its variables") {
    setenv("HERRING_SIZE", "2", 1);
    setenv("HERRING_ADDR", free_address().c_str(), 1);
    setenv("HERRING_SECRET", std::string(64, 'a').c_str(), 1);
    setenv("HERRING_RANK", "1", 1);
    pid_t const other = fork();
    if (other == 0) _exit(run());
    setenv("HERRING_RANK", "0", 1);
    CHECK(run() == 0);
    int status = -1;
    CHECK(waitpid(other, &status, 0) == other);
    CHECK(status == 0);
}

TEST_CASE("security: without a secret it does not join") {
    for (char const* name : {"HERRING_SIZE", "HERRING_ADDR", "HERRING_SECRET", "HERRING_RANK"})
        unsetenv(name);
    CHECK_THROWS_AS(run(), herring::error);
}

TEST_CASE("security: the average of sealed messages is the average") {
    CHECK(herring::launch(3, [](herring::world& world) {
              if (average_rank(world) != 1) throw std::runtime_error("another average");
          }) == 0);
}
