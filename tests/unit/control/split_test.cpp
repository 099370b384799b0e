// herring: tests of control/split.hpp and world::split: who is in a group, and groups of threads, joined or launched.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/split.hpp"

#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/world.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace herring;
using detail::groups_of;
using detail::split_choice;

namespace {

void require(bool holds, char const* what) {
    if (!holds) throw std::runtime_error(std::string("not so: ") + what);
}

/// Runs `rank(world&)` in a thread for each rank of a world: launched, or joined.
template <class Rank> void in_threads(bool by_join, int ranks, Rank const& rank) {
    if (!by_join) {
        (void)launch_threads(ranks, rank);
        return;
    }
    std::string const address = free_address();
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
            try {
                join_options options;
                options.rank = r;
                options.size = ranks;
                options.address = address;
                world here = join(options);
                rank(here);
            } catch (std::exception const& why) {
                wrong[static_cast<std::size_t>(r)] = why.what();
            }
        });
    for (std::thread& each : threads) each.join();
    for (std::string const& each : wrong) CHECK(each == "");
}

/// The ranks of a group, as their members say: numbers in the world that was split.
std::vector<int> roll_call(world& group, int mine) {
    gather_result const all = group.all_gather(std::as_bytes(std::span(&mine, 1)));
    std::vector<int> found;
    for (std::span<std::byte const> const each : all) {
        int number = -1;
        require(each.size() == sizeof number, "an int of each rank");
        std::memcpy(&number, each.data(), sizeof number);
        found.push_back(number);
    }
    return found;
}

template <class Call> errc code_of(Call&& call, std::string_view words = {}) {
    try {
        call();
    } catch (error const& why) {
        CHECK(std::string(why.what()).find(words) != std::string::npos);
        return why.code();
    }
    return errc::ok;
}

std::array<std::byte, 16> key_of(world const& of, int peer) {
    std::array<std::byte, 16> key{};
    of.derive_key(key, "test", peer);
    return key;
}

} // namespace

TEST_CASE("split: groups have the ranks of one colour, by key, then by rank") {
    using lists = std::vector<std::vector<int>>;
    std::vector<split_choice> const one{{2, 0}, {1, 9}, {2, -5}, {-1, 0}, {1, 9}, {2, 0}, {-7, 1}};
    CHECK(groups_of(one) == lists{{1, 4}, {2, 0, 5}});
    CHECK(groups_of(std::vector<split_choice>{{-1, 0}, {-1, 0}}).empty());
    CHECK(groups_of({}).empty());
    // Against a definition: a comes before b if so says the pair of key and rank.
    std::uint32_t state = 1;
    auto const random = [&](int most) {
        state = state * 1664525u + 1013904223u;
        return static_cast<int>(state >> 16) % most;
    };
    for (int round = 0; round < 200; ++round) {
        std::vector<split_choice> all(static_cast<std::size_t>(1 + random(20)));
        for (split_choice& each : all) each = {random(5) - 1, random(3) - 1};
        std::vector<std::vector<int>> expected;
        for (int colour = 0; colour < 4; ++colour) {
            std::vector<std::pair<int, int>> order;
            for (std::size_t r = 0; r < all.size(); ++r)
                if (all[r].colour == colour) order.emplace_back(all[r].key, static_cast<int>(r));
            std::sort(order.begin(), order.end());
            if (!order.empty()) expected.emplace_back();
            for (auto const& [key, rank] : order) expected.back().push_back(rank);
        }
        CHECK(groups_of(all) == expected);
    }
}

TEST_CASE("split: a choice is read as it was written, and nothing else is") {
    split_choice mine{7, -3, 99}, read;
    CHECK(read.read(mine.write()));
    CHECK((read.colour == 7 && read.key == -3 && read.group == 0));
    CHECK(read.read(mine.write_result()));
    CHECK(read.group == 99);
    std::byte const bytes[17]{};
    for (std::size_t n : {0u, 4u, 7u, 9u, 15u, 17u}) CHECK_FALSE(read.read(std::span(bytes, n)));
}

TEST_CASE("split: a world of one, and the world of a rank that is in no group") {
    world alone;
    world same = alone.split(3, 1), none = alone.split(-1);
    CHECK(same.size() == 1);
    CHECK(same.job() != alone.job());
    CHECK(same.split(0).job() != same.job());
    CHECK(alone.split(0).job() != same.job());
    same.fail(failure::make(errc::bad_argument, 0, -1, "test", "no"));
    CHECK(alone.failed() == nullptr);
    same = world(); // the group is gone
    alone.barrier();
    CHECK(none.size() == 0);
    CHECK(none.rank() == -1);
    CHECK(none.node() == -1);
    CHECK(none.local_rank() == -1);
    CHECK(none.local_size() == 0);
    CHECK(code_of([&] { none.barrier(); }, "in no group") == errc::bad_state);
    CHECK(code_of([&] { (void)none.split(0); }, "in no group") == errc::bad_state);
    world const moved = std::move(alone);
    CHECK(alone.size() == 0);
    CHECK(code_of([&] { (void)alone.split(0); }, "moved from") == errc::bad_state);
}

TEST_CASE("split: groups have numbers, nodes, jobs and keys of their own") {
    for (bool const by_join : {false, true})
        in_threads(by_join, 5, [](world& w) {
            world group = w.split(w.rank() == 2 ? -1 : w.rank() % 2, -w.rank());
            if (w.rank() == 2) return require(group.size() == 0, "colour -1: no group");
            std::vector<int> const expected =
                w.rank() % 2 == 0 ? std::vector<int>{4, 0} : std::vector<int>{3, 1};
            require(roll_call(group, w.rank()) == expected, "numbered by key");
            require(expected[static_cast<std::size_t>(group.rank())] == w.rank(), "the rank's own number");
            require(group.has_secret() == w.has_secret() && group.local_address() == w.local_address(),
                    "what belongs to the process is as it was");
            require(group.ranks_on_this_machine() == w.ranks_on_this_machine(), "all share the machine");
            require(group.job() != w.job() && group.default_timeout() == w.default_timeout(), "a job");
            std::uint64_t const job = group.job();
            for (std::span<std::byte const> const each : group.all_gather(std::as_bytes(std::span(&job, 1))))
                require(std::memcmp(each.data(), &job, sizeof job) == 0, "one job in a group");
            std::array<std::byte, 16> const key = key_of(group, 1 - group.rank());
            gather_result const keys = group.all_gather(key);
            require(std::ranges::equal(std::as_const(keys)[0], std::as_const(keys)[1]), "a key of the pair");
            require(key != key_of(w, expected[static_cast<std::size_t>(1 - group.rank())]) &&
                        key != key_of(group, group.rank()),
                    "and of no other");
            world again = group.split(0);
            require(again.job() != group.job() && key_of(again, 1 - again.rank()) != key, "a job of its own");
        });
}

TEST_CASE("split: a group's nodes are those of its ranks, and so are declared rates") {
    (void)launch_threads(
        6,
        [](world& w) {
            world group = w.split(w.rank() < 2 ? 0 : 1, -w.rank());
            if (w.rank() < 2) {
                require(group.nodes() == 1 && group.local_size() == 2, "both on one node");
                return;
            }
            // Ranks 5, 4, 3, 2 on nodes c, a, b, b.
            require(group.topology() == topology({0, 1, 2, 2}, {}, {50, 10, 30, 30}), "three nodes");
        },
        {.nodes = {"a", "a", "b", "b", "a", "c"}, .rates = {10, 10, 30, 30, 10, 50}});
    (void)launch_threads(3,
                         [](world& w) {
                             CHECK(code_of([&] { (void)w.split(0); }, "servers") == errc::unsupported);
                             w.barrier(); // goes on
                         },
                         {.roles = {role::worker, role::worker, role::server}});
}

TEST_CASE("split: rows and columns at once, each in a thread, with groups of groups") {
    for (bool const by_join : {false, true})
        in_threads(by_join, 4, [](world& w) {
            world row = w.split(w.rank() / 2, w.rank()), column = w.split(w.rank() % 2, w.rank());
            auto const play = [&](world& in, std::vector<int> const& members) {
                for (int round = 0; round < 30; ++round) {
                    require(roll_call(in, w.rank()) == members, "the members");
                    world part = in.split(round % 3 == 0 ? in.rank() : 0, -in.rank());
                    if (round % 2 == 0) part.barrier();
                    require(part.size() == (round % 3 == 0 ? 1 : 2), "a group of the group");
                }
            };
            int const r = w.rank(), first = r / 2 * 2;
            std::string wrong;
            std::thread other([&] {
                try {
                    play(column, {r % 2, r % 2 + 2});
                } catch (std::exception const& why) {
                    wrong = why.what();
                }
            });
            play(row, {first, first + 1});
            other.join();
            require(wrong.empty(), wrong.c_str());
            w.barrier();
        });
}

TEST_CASE("split: memory of groups is used again, and where it runs out all ranks hear so and go on") {
    (void)launch_threads(3, [](world& w) {
        for (int round = 0; round < 600; ++round) {
            world const group = w.split(w.rank() % (1 + round % 3));
            require(group.size() > 0, "a group");
        }
        std::vector<world> many;
        while (many.size() < 256) many.push_back(w.split(w.rank() == 0 ? 0 : 1));
        CHECK(code_of([&] { (void)w.split(0); }, "256 splits") == errc::no_resources);
        require(w.failed() == nullptr, "the world goes on");
        w.barrier();
        many.pop_back();
        w.barrier(); // all ranks have
        world last = w.split(0);
        last.barrier();
        many.back().barrier();
        require(w.split(-1).size() == 0, "no group needs no memory");
    });
}

TEST_CASE("split: a rank that is in no group, or in groups with itself alone, waits for nobody") {
    for (bool const by_join : {false, true})
        in_threads(by_join, 3, [](world& w) {
            world none = w.split(-1);
            require(none.size() == 0, "nobody is in a group");
            world alone = w.split(w.rank());
            require(alone.size() == 1 && alone.rank() == 0, "one rank");
            alone.barrier();
            if (w.rank() == 1) alone.fail(failure::make(errc::bad_argument, 0, -1, "test", "mine"));
            require((alone.failed() != nullptr) == (w.rank() == 1), "its own failure");
            w.barrier();
        });
}
