// herring: a world of one, moves, and failures in the words of each rank.
// SPDX-License-Identifier: Apache-2.0
#include "herring/world.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using herring::errc;
using herring::failure;
using herring::world;

static_assert(std::is_nothrow_move_constructible_v<world> && std::is_nothrow_move_assignable_v<world>);
static_assert(!std::is_copy_constructible_v<world> && !std::is_copy_assignable_v<world>);

TEST_CASE("world: a default one is one rank alone") {
    world alone;
    CHECK(alone.rank() == 0);
    CHECK(alone.size() == 1);
    CHECK(alone.node() == 0);
    CHECK(alone.nodes() == 1);
    CHECK(alone.local_rank() == 0);
    CHECK(alone.local_size() == 1);
    CHECK(alone.ranks_on_this_machine() == 1);
    CHECK(alone.local_address() == "127.0.0.1");
    CHECK(alone.job() != 0);
    CHECK(alone.job() != world().job());
    alone.barrier();
    std::vector<std::byte> const mine(3, std::byte{7});
    auto const all = alone.all_gather(mine);
    REQUIRE(all.size() == 1);
    CHECK(std::ranges::equal(all[0], mine));
    CHECK(alone.failed() == nullptr);
    CHECK_NOTHROW(alone.check());
}

TEST_CASE("world: the first announced failure stays, and ends collectives") {
    world alone;
    alone.fail(failure::make(errc::device, 0, -1, "all_reduce", "first"));
    alone.fail(failure::make(errc::internal, 0, -1, "all_reduce", "second"));
    REQUIRE(alone.failed() != nullptr);
    CHECK(std::string(alone.failed()->text) == "first");
    CHECK_THROWS_AS(alone.check(), herring::error);
    try {
        alone.barrier();
        FAIL("a failed world has no barrier");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::device);
        CHECK(why.reported_by() == 0);
    }
    CHECK_THROWS_AS(alone.all_gather({}), herring::error);
}

TEST_CASE("world: moves; what was moved from says so") {
    world first;
    auto const job = first.job();
    world second = std::move(first);
    CHECK(second.job() == job);
    second.barrier();
    CHECK(first.failed() == nullptr); // NOLINT: on purpose
    first.fail(failure{});
    try {
        first.barrier();
        FAIL("it was moved from");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::bad_state);
    }
    first = std::move(second);
    first.barrier();
    world& same = first;
    first = std::move(same);
    first.barrier();
}

TEST_CASE("world: a failure is told in the words of each rank") {
    // Rank 2 found that rank 3 died: everyone blames rank 3, rank 3 learns who gave it up.
    failure const lost = failure::make(errc::peer_lost, 2, 3, "wait", "its connection closed");
    failure const at_0 = herring::detail::as_seen_by(lost, 0);
    CHECK(at_0.what == errc::peer_lost);
    CHECK(at_0.reporter == 0);
    CHECK(at_0.peer == 3);
    failure const at_3 = herring::detail::as_seen_by(lost, 3);
    CHECK(at_3.peer == 3);
    CHECK(std::string(at_3.text).find("rank 2 gave this rank up") == 0);
    CHECK(herring::detail::as_seen_by(lost, 2).reporter == 2);
    // Rank 1 had an error of its own: the others blame rank 1.
    failure const own = failure::make(errc::bad_argument, 1, -1, "ready", "index 9 of 4");
    failure const other = herring::detail::as_seen_by(own, 0);
    CHECK(other.what == errc::peer_failed);
    CHECK(other.peer == 1);
    CHECK(std::string(other.text) == "rank 1 ended with: bad argument: index 9 of 4");
    // A death that was seen from outside ended what this rank was doing.
    failure const outside = failure::make(errc::peer_lost, -1, 1, "launch", "killed");
    CHECK(std::string(herring::detail::as_seen_by(outside, 0, "barrier").operation) == "barrier");
}

TEST_CASE("world: alone, a suspicion is the failure, and nobody asks") {
    world alone;
    herring::detail::failure_detector& detector = herring::detail::detector(alone);
    CHECK(detector.probe() == 0);
    detector.waits_for(0, 0);
    detector.not_waiting();
    herring::detail::suspicion_report of;
    of.why = failure::make(errc::timeout, 0, -1, "wait", "in vain");
    detector.report_suspicion(of);
    REQUIRE(alone.failed() != nullptr);
    CHECK(std::string(alone.failed()->text) == "in vain");
}
