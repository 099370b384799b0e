// herring: tests of ensemble/lane.hpp: who owns the descriptors of a lane.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/lane.hpp"

#include "doctest/doctest.h"

#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace ensemble_lane_ends_test {

using herring::detail::ensembles::lane_ends;

bool open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

TEST_CASE("lane_ends: closes what it owns, once, and not what was taken over") {
    int pipes[2];
    REQUIRE(::pipe2(pipes, O_CLOEXEC) == 0);
    int kept = -1;
    {
        lane_ends first;
        first.wake_up = pipes[0];
        first.memory = pipes[1];
        CHECK(first.is_shared());
        lane_ends second(std::move(first));
        CHECK_FALSE(first.is_shared());
        lane_ends third;
        third = std::move(second);
        CHECK(third.wake_up == pipes[0]);
        kept = std::exchange(third.memory, -1);
    }
    CHECK_FALSE(open(pipes[0]));
    CHECK(open(kept));
    ::close(kept);
}

TEST_CASE("lane: words") {
    CHECK(to_string(herring::lane::any) == std::string("any"));
    CHECK(to_string(herring::lane::tcp) == std::string("tcp"));
    CHECK(to_string(herring::lane::shared) == std::string("shared"));
    CHECK(to_string(static_cast<herring::lane>(9)) == std::string("unknown"));
}

} // namespace ensemble_lane_ends_test
