// herring: tests of control/failure/deadlock.hpp: crossed calls are found, and nothing that can go on is taken for them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/failure/deadlock.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace herring;
using detail::blocked_report;
using entry = detail::blocked_report::entry;

namespace {
blocked_report report(std::vector<entry> const& waiting, std::vector<entry> const& begun) {
    blocked_report made;
    for (entry const& e : waiting) made.waiting[made.waits++] = e;
    for (entry const& e : begun) made.begun[made.channels++] = e;
    made.waits_of_process = made.waits;
    return made;
}
detail::deadlock find_deadlock(std::span<blocked_report const> all, bool one_process,
                               std::uint64_t world = 0) {
    return detail::deadlock_search(all, one_process).in(world);
}
int proven(std::vector<blocked_report> const& all, bool one_process = false) {
    return find_deadlock({all.data(), all.size()}, one_process).rank;
}
} // namespace

TEST_CASE("deadlock: two ranks, each in a call that the other has not made") {
    std::vector<blocked_report> const all{report({{1, 5}}, {{0, 3}, {1, 6}, {2, 5}}),
                                          report({{2, 5}}, {{0, 3}, {1, 5}, {2, 6}})};
    auto const found = find_deadlock({all.data(), all.size()}, false);
    CHECK(found.rank == 0);
    CHECK(found.other == 1);
    CHECK(found.channel == 1);
    CHECK(found.other_channel == 2);
    failure const why = describe(found);
    CHECK(why.what == errc::mismatch);
    CHECK(why.peer == 1);
    CHECK(std::string(why.text).find(
              "rank 0 waits in reducer 1 for rank 1, which has not made that call and waits in "
              "reducer 2") == 0);
}

TEST_CASE("deadlock: calls that have names are called by them, and where one has none by the reducers") {
    std::vector<blocked_report> all{report({{1, 5}}, {{1, 6}, {2, 5}}), report({{2, 5}}, {{1, 5}, {2, 6}})};
    all[0].name_call("sum of float");
    std::string const one = describe(find_deadlock({all.data(), all.size()}, false)).text;
    CHECK(one.find("waits in reducer 2 (reducers in order") != one.npos);
    all[1].name_call("a name of more than twenty-four letters");
    std::string const both = describe(find_deadlock({all.data(), all.size()}, false)).text;
    CHECK(both.find("rank 0 waits in sum of float for rank 1, which has not made that call and waits in "
                    "a name of more than twen: calls in crossed order") == 0);
}

TEST_CASE("deadlock: what is on its way over a slow link is no deadlock") {
    // Both in one reducer.
    CHECK(proven({report({{1, 5}}, {{1, 6}}), report({{1, 5}}, {{1, 6}})}) == -1);
    // Rank 1 has done its part of what rank 0 waits for, and is ahead: in another reducer, in the same, in the world.
    CHECK(proven({report({{1, 5}}, {{1, 6}, {2, 0}}), report({{2, 0}}, {{1, 6}, {2, 1}})}) == -1);
    CHECK(proven({report({{1, 5}}, {{1, 6}}), report({{1, 6}}, {{1, 7}})}) == -1);
    CHECK(proven({report({{1, 5}}, {{0, 2}, {1, 6}}), report({{0, 2}}, {{0, 3}, {1, 6}})}) == -1);
}

TEST_CASE("deadlock: who has not reported may yet do anything") {
    blocked_report const silent;
    CHECK(proven({report({{1, 5}}, {{1, 6}, {2, 5}}), silent}) == -1);
    CHECK(proven({report({{1, 5}}, {{1, 6}, {2, 5}}), silent, report({{1, 5}}, {{1, 6}, {2, 5}})}) == -1);
    // But two that are crossed are, whatever a third does.
    CHECK(proven({report({{1, 5}}, {{1, 6}, {2, 5}}), silent, report({{2, 5}}, {{1, 5}, {2, 6}})}) == 0);
}

TEST_CASE("deadlock: each of a rank's threads has to be stuck") {
    // Rank 0's second thread waits for what rank 1 has done.
    blocked_report const one = report({{2, 5}}, {{1, 5}, {2, 6}, {3, 9}});
    CHECK(proven({report({{1, 5}, {3, 8}}, {{1, 6}, {2, 5}, {3, 9}}), one}) == -1);
    // For what rank 1 has not done either.
    CHECK(proven({report({{1, 5}, {3, 9}}, {{1, 6}, {2, 5}, {3, 10}}), one}) == 0);
    // A wait of the process that is of another world.
    blocked_report two = report({{1, 5}}, {{1, 6}, {2, 5}});
    two.waits_of_process = 2;
    CHECK(proven({two, one}) == -1);
}

TEST_CASE("deadlock: circles of several, and ranks beside them") {
    auto const in = [](std::uint64_t c) {
        return report({{c, 0}}, {{1, c == 1 ? 1u : 0u}, {2, c == 2 ? 1u : 0u}, {3, c == 3 ? 1u : 0u}});
    };
    CHECK(proven({in(1), in(2), in(3)}) == 0);
    CHECK(proven({in(1), in(1), in(1)}) == -1);
    CHECK(proven({in(1), in(1), in(2)}) == 0);
    // A reducer that the other rank does not have (yet) proves nothing.
    CHECK(proven({report({{9, 0}}, {{9, 1}, {1, 0}}), report({{1, 0}}, {{1, 1}})}) == -1);
}

TEST_CASE("deadlock: ranks that are threads of one process, all of whose waits have to be stuck") {
    blocked_report a = report({{1, 5}}, {{1, 6}, {2, 5}}), b = report({{2, 5}}, {{1, 5}, {2, 6}});
    a.waits_of_process = b.waits_of_process = 2;
    CHECK(proven({a, b}, true) == 0);
    a.waits_of_process = b.waits_of_process = 3;
    CHECK(proven({a, b}, true) == -1);
}

TEST_CASE("deadlock: ranks that wait for each other in several worlds are found in each of them") {
    using detail::channel_in;
    // 0 waits in the row {0, 1}, 1 in the column {1, 3}, 3 in the row {2, 3}, 2 in the column {0, 2}.
    std::uint64_t const row_0 = channel_in(1, 0), row_1 = channel_in(2, 0), column_0 = channel_in(3, 0),
                        column_1 = channel_in(4, 0);
    std::vector<blocked_report> all{report({{row_0, 5}}, {{0, 3}, {row_0, 6}, {column_0, 5}}),
                                    report({{column_1, 5}}, {{0, 3}, {row_0, 5}, {column_1, 6}}),
                                    report({{column_0, 5}}, {{0, 3}, {row_1, 5}, {column_0, 6}}),
                                    report({{row_1, 5}}, {{0, 3}, {row_1, 6}, {column_1, 5}})};
    int const waits[] = {0, 3, 2, 1}, for_whom[] = {1, 2, 0, 3}; // in worlds 1 to 4
    for (std::uint64_t world = 1; world <= 4; ++world) {
        auto const found = find_deadlock({all.data(), all.size()}, false, world);
        CHECK(found.rank == waits[world - 1]);
        CHECK(found.other == for_whom[world - 1]);
        CHECK(std::string(describe(found).text)
                  .find("waits in a barrier or a construction for rank " + std::to_string(found.other) +
                        ", which has not made that call and waits in a call of another world") !=
              std::string::npos);
    }
    CHECK(proven(all) == -1); // nobody waits in the joined world
    all[3] = report({}, {{0, 3}, {row_1, 5}, {column_1, 5}});
    for (std::uint64_t world = 0; world <= 4; ++world)
        CHECK(find_deadlock({all.data(), all.size()}, false, world).rank == -1);
}

TEST_CASE("deadlock: what the definition finds, in any mixture of reports") {
    std::mt19937 random(7);
    auto const below = [&](std::size_t n) { return random() % n; };
    int found_any = 0;
    for (int round = 0; round < 4000; ++round) {
        std::vector<blocked_report> all(2 + below(6));
        for (blocked_report& one : all) {
            std::vector<entry> waiting, begun;
            for (std::uint64_t c = 0; c < 4; ++c)
                if (below(5) > 0) begun.push_back({c, below(4)});
            for (std::size_t w = 0; w < below(3); ++w) {
                entry const& in = begun.empty() ? entry{9, 1} : begun[below(begun.size())];
                waiting.push_back({in.channel, in.number > 0 ? in.number - 1 : 0});
            }
            one = report(waiting, begun);
            if (below(8) == 0) ++one.waits_of_process;
        }
        // The largest set, by its definition: leave out whoever waits for nobody of it, until none is left.
        std::vector<bool> stuck;
        for (blocked_report const& one : all)
            stuck.push_back(one.waits > 0 && one.waits == one.waits_of_process);
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t r = 0; r < all.size(); ++r)
                for (std::size_t w = 0; stuck[r] && w < all[r].waits; ++w) {
                    bool any = false;
                    for (std::size_t p = 0; p < all.size(); ++p)
                        any = any || (stuck[p] && all[p].lacks(all[r].waiting[w]));
                    if (!any) stuck[r] = false, changed = true;
                }
        }
        auto const first = std::find(stuck.begin(), stuck.end(), true);
        int const due = first == stuck.end() ? -1 : static_cast<int>(first - stuck.begin());
        REQUIRE(proven(all) == due);
        found_any += due >= 0;
    }
    CHECK(found_any > 400);
    CHECK(found_any < 3600);
}

TEST_CASE("deadlock: 16,384 ranks in one call, and one of them in another: by sorting, not by pairs") {
    // All wait for operation 5 of reducer 1, which the last rank, which waits in reducer 2, has not begun.
    std::vector<blocked_report> all(16'384, report({{1, 5}}, {{0, 3}, {1, 6}, {2, 5}}));
    CHECK(proven(all) == -1);
    all.back() = report({{2, 5}}, {{0, 3}, {1, 5}, {2, 6}});
    auto const found = find_deadlock({all.data(), all.size()}, false);
    CHECK(found.rank == 0);
    CHECK(found.other == 16'383);
    // A chain: each rank waits for what the next one has not begun, and the last one goes on.
    for (std::size_t r = 0; r < all.size(); ++r) all[r] = report({{r, 0}}, {{r, 1}, {r + 1, 0}});
    for (std::size_t r = 1; r < all.size(); ++r) all[r].begun[1] = {r - 1, 0};
    all[0] = report({{0, 0}}, {{0, 1}});
    CHECK(proven(all) == -1);
}

TEST_CASE("deadlock: a wait that a failure of its world has ended proves nothing about another world") {
    using detail::channel_in;
    // 0 waited for 1 in world 1, which has failed, and computes; 1 waits for 0 in world 2.
    std::uint64_t const first = channel_in(1, 0), second = channel_in(2, 0);
    std::vector<blocked_report> all{report({{first, 5}}, {{first, 6}, {second, 3}}),
                                    report({{second, 3}}, {{first, 5}, {second, 4}})};
    CHECK(find_deadlock(all, false, 2).rank == 1);
    detail::drop_ended_waits(all, [](std::uint64_t world) { return world != 1; });
    CHECK(find_deadlock(all, false, 2).rank == -1);
    CHECK(all[0].waits == 0);
    CHECK(all[1].waits == 1);
}
