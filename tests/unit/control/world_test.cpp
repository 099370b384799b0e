// herring: a world of one, moves, and failures in the words of each rank.
// SPDX-License-Identifier: Apache-2.0
#include "herring/world.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

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
    failure const differs = failure::make(errc::mismatch, 0, 1, "wait", "rank 1 is elsewhere");
    CHECK(std::string(herring::detail::as_seen_by(differs, 1).text) ==
          "rank 0 found that this rank differs: rank 1 is elsewhere");
    // Rank 1 had an error of its own: the others blame rank 1.
    failure const own = failure::make(errc::bad_argument, 1, -1, "ready", "index 9 of 4");
    failure const other = herring::detail::as_seen_by(own, 0);
    CHECK(other.what == errc::peer_failed);
    CHECK(other.peer == 1);
    CHECK(std::string(other.text) == "rank 1 ended with: bad argument: index 9 of 4");
    // An exception of the program's own: no peer of rank 1 has failed.
    failure const thrown = failure::make(errc::peer_failed, 1, -1, "launch", "out of data");
    CHECK(std::string(herring::detail::as_seen_by(thrown, 0).text) == "rank 1 ended with: out of data");
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

namespace {
std::vector<std::byte> derived(world const& from, std::string_view label, int peer, std::size_t size = 32,
                               std::span<std::byte const> context = {}) {
    std::vector<std::byte> key(size);
    from.derive_key(key, label, peer, context);
    return key;
}
} // namespace

TEST_CASE("world: a key is of a pair, a label and a context, the same on both of its ranks and on no other") {
    std::vector<world> ranks = herring::thread_worlds(3);
    std::vector<std::byte> const context(5, std::byte{9});
    CHECK(ranks[0].has_secret());
    std::vector<std::vector<std::byte>> keys{
        derived(ranks[0], "a", 1), derived(ranks[0], "a", 2), derived(ranks[1], "a", 2),
        derived(ranks[0], "a", 0), derived(ranks[0], "b", 1), derived(ranks[0], "a", 1, 32, context),
        derived(world(), "a", 0)};
    for (std::size_t i = 0; i < keys.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) CHECK(keys[i] != keys[j]);
    CHECK(keys[0] == derived(ranks[1], "a", 0));
    CHECK(keys[2] == derived(ranks[2], "a", 1));
    CHECK(keys[5] == derived(ranks[1], "a", 0, 32, context));
    std::vector<std::byte> const longer = derived(ranks[1], "a", 0, 8160);
    CHECK(std::equal(keys[0].begin(), keys[0].end(), longer.begin()));
    for (auto const& [peer, size] : {std::pair(3, 32), std::pair(-1, 32), std::pair(1, 8161)}) {
        try {
            derived(ranks[0], "a", peer, static_cast<std::size_t>(size));
            FAIL("it is refused");
        } catch (herring::error const& why) {
            CHECK(why.code() == errc::bad_argument);
        }
    }
    CHECK_THROWS_AS(derived(ranks[0], std::string_view("a\0b", 3), 1), herring::error);
    world const moved = std::move(ranks[0]);
    CHECK(derived(moved, "a", 1) == keys[0]);
    try {
        derived(ranks[0], "a", 0);
        FAIL("it was moved from");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::bad_state);
    }
}

TEST_CASE("world: launched processes derive the same keys, and no two launches do") {
    std::vector<std::byte> seen[2];
    for (auto& key : seen) {
        int pipe[2];
        REQUIRE(::pipe(pipe) == 0);
        int const status = herring::launch(2, [&](world& here) {
            auto const mine = derived(here, "launched", 1 - here.rank());
            auto const all = here.all_gather(mine); // no key that is used
            if (here.rank() == 0) (void)!::write(pipe[1], mine.data(), mine.size());
            return here.has_secret() && std::ranges::equal(all[0], all[1]) ? 0 : 1;
        });
        CHECK(status == 0);
        key.resize(32);
        CHECK(::read(pipe[0], key.data(), key.size()) == 32);
        ::close(pipe[0]);
        ::close(pipe[1]);
    }
    CHECK(seen[0] != seen[1]);
}

TEST_CASE("world: a world that nobody gave a key has none") {
    world const bare{herring::detail::membership{}};
    CHECK_FALSE(bare.has_secret());
    CHECK(derived(bare, "a", 0) == derived(bare, "a", 0));
}
