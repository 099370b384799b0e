// herring: tests of control/failure/wait_graph.hpp: chains of «waits for», to their end and in words.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/failure/wait_graph.hpp"

#include "doctest/doctest.h"

#include <array>
#include <string>
#include <vector>

using herring::errc;
using herring::failure;
using namespace herring::detail;

namespace {

wait_report waits(int rank) { return {rank_state::waiting, rank}; }
constexpr wait_report idle{rank_state::idle, -1}, unknown{}, silent{rank_state::silent, -1},
    stopped{rank_state::stopped, -1}, left{rank_state::left, -1};

root_cause found_in(std::vector<int> const& suspect, std::vector<wait_report> const& all, int reporter = 0) {
    return find_root_cause(reporter, suspect, static_cast<int>(all.size()),
                           [&](int r) { return all[static_cast<std::size_t>(r)]; });
}

} // namespace

TEST_CASE("root cause: a word of wait_report says whom, and which question it answers") {
    CHECK(wait_report::read(wait_report::not_waiting, 5).state == rank_state::idle);
    for (int const rank : {-1, 0, 1, 65'535}) {
        wait_report const fresh = wait_report::read(wait_report::waits_for(rank, 5), 5);
        CHECK(fresh.state == rank_state::waiting);
        CHECK(fresh.awaits == rank);
        CHECK(wait_report::read(wait_report::waits_for(rank, 6), 5).state == rank_state::waiting);
        CHECK(wait_report::read(wait_report::waits_for(rank, 4), 5).state == rank_state::unknown);
    }
    // Numbers go round.
    CHECK(wait_report::read(wait_report::waits_for(1, 1), 0xFFFFFFFFu).state == rank_state::waiting);
    CHECK(wait_report::read(wait_report::waits_for(1, 0xFFFFFFFFu), 1).state == rank_state::unknown);
}

TEST_CASE("root cause: who waits for nobody is the one") {
    for (wait_report const& end : {idle, silent, stopped, left, waits(-1)}) {
        root_cause const found = found_in({1}, {waits(1), end, idle});
        CHECK(found.rank == 1);
        CHECK(found.state == end.state);
        CHECK(found.before == -1);
        CHECK_FALSE(found.cycle);
        root_cause const far = found_in({1}, {waits(1), waits(3), idle, waits(2)});
        CHECK(far.rank == 2);
        CHECK(far.before == 3);
    }
}

TEST_CASE("root cause: what is not known yet keeps it open") {
    CHECK_FALSE(found_in({1}, {waits(1), unknown}).reached());
    CHECK_FALSE(found_in({1}, {waits(1), waits(2), unknown}).reached());
    CHECK(found_in({1}, {waits(1), idle, unknown}).reached());
    // Of several that are missing, one that is stopped is enough; one that is merely late is not.
    CHECK(found_in({1, 2}, {idle, unknown, stopped}).rank == 2);
    CHECK_FALSE(found_in({1, 2}, {idle, idle, unknown}).reached());
}

TEST_CASE("root cause: of several that are missing, who is stopped or gone, else the first") {
    CHECK(found_in({1, 2}, {idle, idle, idle}).rank == 1);
    CHECK(found_in({1, 2}, {idle, idle, silent}).rank == 2);
    CHECK(found_in({1, 2, 3}, {idle, waits(3), idle, left}).rank == 3);
    CHECK(found_in({1, 2}, {idle, waits(2), idle}).rank == 2);
    CHECK_FALSE(found_in({}, {idle}).reached());
}

TEST_CASE("root cause: a circle ends at the first suspect, with the reporter in it or not") {
    for (auto const& all : {std::vector<wait_report>{waits(1), waits(0), idle},
                            {waits(1), waits(2), waits(1)},
                            {waits(1), waits(2), waits(0)}}) {
        root_cause const found = found_in({1}, all);
        CHECK(found.rank == 1);
        CHECK(found.cycle);
        CHECK(found.before == -1);
    }
    // The reporter itself is never the one, whatever is known of it.
    CHECK(found_in({1}, {idle, waits(0)}).rank == 1);
    // Nonsense is an end.
    CHECK(found_in({1}, {waits(1), waits(7)}).rank == 1);
    CHECK(found_in({1}, {waits(1), waits(1)}).rank == 1);
}

TEST_CASE("root cause: who is stopped or gone outside of a circle goes before who is in it; who is in no "
          "call does not") {
    for (wait_report const& other : {silent, stopped}) {
        root_cause const found = found_in({1}, {waits(1), waits(2), waits(1), idle, other});
        CHECK(found.rank == 4);
        CHECK(found.state == other.state);
        CHECK_FALSE(found.cycle);
    }
    for (wait_report const& other : {idle, left, waits(0)})
        CHECK(found_in({1}, {waits(1), waits(2), waits(1), idle, other}).cycle);
    // Who has not replied may be it.
    CHECK_FALSE(found_in({1}, {waits(1), waits(2), waits(1), idle, unknown}).reached());
    CHECK(found_in({1}, {waits(1), waits(2), waits(1), unknown, stopped}).rank == 4);
    // The reporter has accused, so it is not.
    CHECK(found_in({1}, {stopped, waits(0)}).cycle);
}

TEST_CASE("root cause: in words") {
    failure const why =
        failure::make(errc::timeout, 0, 1, "wait", "its part has not come within the deadline; look");
    failure told = describe(why, {.rank = 1, .state = rank_state::idle, .before = -1, .cycle = false});
    CHECK(told.what == errc::timeout);
    CHECK(told.reporter == 0);
    CHECK(told.peer == 1);
    CHECK(std::string(told.text).find("its part has not come within the deadline; rank 1 has not called") ==
          0);
    told = describe(why, {.rank = 3, .state = rank_state::silent, .before = 2, .cycle = false});
    CHECK(told.peer == 3);
    CHECK(std::string(told.text).find("rank 2 waits for rank 3, which does not answer") == 0);
    told = describe(why, {.rank = 1, .state = rank_state::waiting, .before = -1, .cycle = true});
    CHECK(std::string(told.text).find("rank 1 waits for a rank that waits for it") != std::string::npos);
    told = describe(why, {.rank = 1, .state = rank_state::stopped, .before = -1, .cycle = false});
    CHECK(std::string(told.text).find("rank 1 is stopped") != std::string::npos);
    told = describe(why, {.rank = 1, .state = rank_state::left, .before = 0, .cycle = false});
    CHECK(std::string(told.text).find("which has left") != std::string::npos);
}
