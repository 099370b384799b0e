// herring: tests of control/failure/probe_round.hpp: a verdict comes when the replies allow one, and not before.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/failure/probe_round.hpp"

#include "herring/control/failure/wait_graph.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

using namespace herring;
using detail::probe_round;
using detail::rank_state;
using detail::wait_report;

namespace {

constexpr time_point deadline{std::chrono::seconds(100)};

probe_round round_of(int suspect, bool certain = false) {
    probe_round round;
    round.begin(failure::make(errc::timeout, 0, suspect, "wait", "its part has not come; look"), certain, 3,
                deadline);
    return round;
}

failure verdict(probe_round& round, std::vector<int> const& missing = {}) {
    return round.verdict({missing.data(), missing.size()}, [&](int rank) { return round.reply(rank); });
}

} // namespace

TEST_CASE("probe_round: without the suspect's reply there is no verdict; the chain of replies leads to one") {
    CHECK_FALSE(probe_round().active());
    probe_round round = round_of(1);
    CHECK(round.active());
    CHECK(verdict(round).what == errc::ok);
    round.reply(1) = {rank_state::waiting, 2};
    CHECK(verdict(round).what == errc::ok); // rank 2 has not replied
    round.reply(2) = {rank_state::idle, -1};
    failure const found = verdict(round);
    CHECK(found.what == errc::timeout);
    CHECK(found.peer == 2);
    CHECK(found.reporter == 0);
    CHECK(std::string(found.text).find("rank 1 waits for rank 2, which has not called") == 0);
}

TEST_CASE("probe_round: a certain suspicion stands once the suspect has replied") {
    probe_round round = round_of(1, true);
    CHECK(verdict(round).what == errc::ok);
    round.reply(1) = {rank_state::waiting, 2}; // its reason came before, if it had one
    CHECK(verdict(round).peer == 1);
    CHECK(std::string(verdict(round).text) == "its part has not come; look");
}

TEST_CASE("probe_round: a suspicion of no rank in particular is the verdict") {
    probe_round round = round_of(-1);
    CHECK(verdict(round).peer == -1);
    CHECK(verdict(round).what == errc::timeout);
}

TEST_CASE(
    "probe_round: of the ranks missing in a collective, one that is stopped goes before one that is late") {
    probe_round round = round_of(1);
    round.reply(1) = {rank_state::idle, -1};
    CHECK(verdict(round, {1, 2}).what == errc::ok);
    round.reply(2) = {rank_state::stopped, -1};
    CHECK(verdict(round, {1, 2}).peer == 2);
}

TEST_CASE("probe_round: time in which this rank was stopped does not count") {
    probe_round round = round_of(1);
    CHECK_FALSE(round.expired(deadline - std::chrono::milliseconds(1)));
    CHECK(round.expired(deadline));
    round.postpone(std::chrono::seconds(1));
    CHECK_FALSE(round.expired(deadline));
    CHECK(round.expired(deadline + std::chrono::seconds(1)));
}

TEST_CASE("departure: says who left, and how") {
    failure const gone = detail::departure(2, 1, "barrier", "its world was destroyed");
    CHECK(gone.what == errc::peer_lost);
    CHECK(gone.reporter == 2);
    CHECK(gone.peer == 1);
    CHECK(std::string(gone.text) == "it left (its world was destroyed) while others still wait for it; let "
                                    "every rank make the same calls");
}
