// herring: the lanes of a frontend, and where requests lie.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_state.hpp"

#include "herring/ensemble/lane.hpp"

#include "doctest/doctest.h"

#include <cstddef>

#include <sys/socket.h>

namespace ensemble_frontend_lanes_test {

namespace ensembles = herring::detail::ensembles;
using herring::lane;

TEST_CASE("ensemble request_store: memory of one's own where only tcp is allowed, else shared") {
    ensembles::request_store own(4, 100, 2, 4, lane::tcp);
    CHECK(own.descriptor() == -1);
    CHECK(own.region() == nullptr);
    ensembles::request_store shared(4, 100, 2, 4, lane::any);
    CHECK((shared.descriptor() >= 0) == (shared.region() != nullptr));
    for (auto* const each : {&own, &shared})
        for (ensembles::slot_index i = 0; i < 4; ++i) {
            REQUIRE(each->slot(i).size() == 100);
            for (std::byte& b : each->slot(i)) b = std::byte{7};
        }
}

TEST_CASE("ensemble frontend_lanes: a socket is a tcp lane; shared memory without any is refused") {
    ensembles::request_store own(4, 100, 2, 4, lane::tcp);
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    using link = ensembles::link<ensembles::frontend_lanes::tcp, ensembles::frontend_lanes::shared>;
    {
        link l(0, 1, 1);
        ensembles::lane_ends mine;
        mine.socket = ends[0];
        ensembles::frontend_lanes::open(l, std::move(mine), own, 0, 4, 100, 16);
        CHECK(!l.is_shared());
        CHECK(l.descriptor() == ends[0]);
    }
    link l(0, 1, 1);
    ensembles::lane_ends bell;
    bell.wake_up = ends[1];
    CHECK_THROWS_AS(ensembles::frontend_lanes::open(l, std::move(bell), own, 0, 4, 100, 16), herring::error);
}

} // namespace ensemble_frontend_lanes_test
