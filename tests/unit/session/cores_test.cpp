// herring: tests of session/cores.hpp, and of what a reducer makes of ranks that are bound to cores.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/cores.hpp"

#include "doctest/doctest.h"

#include "herring/launch.hpp"
#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/rules.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

namespace {

using herring::detail::cores_of_rank;

cores_of_rank rank_on(std::vector<int> const& cores, int threads = 1, std::uint64_t machine = 7) {
    cores_of_rank made;
    made.machine = machine;
    made.threads = threads;
    for (int const core : cores) CPU_SET(core, &made.cores);
    return made;
}

// What each of the ranks is told, as '1' (oversubscribed) and '0'.
std::string told(std::vector<cores_of_rank> const& ranks) {
    std::vector<cores_of_rank> all; // as they travel
    for (cores_of_rank const& one : ranks) CHECK(all.emplace_back().read(one.bytes()));
    std::string answers;
    for (cores_of_rank const& mine : ranks) answers += herring::detail::oversubscribed(mine, all) ? '1' : '0';
    CHECK(herring::detail::any_oversubscribed(all) == (answers.find('1') != std::string::npos));
    return answers;
}

} // namespace

TEST_CASE("cores: ranks that a launcher bound to a core each are not oversubscribed") {
    CHECK(told({rank_on({0}), rank_on({1})}) == "00");
    CHECK(told({rank_on({0, 1}), rank_on({2, 3}), rank_on({4, 5}), rank_on({1023})}) == "0000");
    CHECK(told({rank_on({0}), rank_on({0})}) == "11");
    CHECK(told({rank_on({0}), rank_on({0}), rank_on({1})}) == "110");
}

TEST_CASE("cores: ranks that may run anywhere share what there is") {
    CHECK(told({rank_on({0, 1}), rank_on({0, 1})}) == "00");
    CHECK(told({rank_on({0, 1}), rank_on({0, 1}), rank_on({0, 1})}) == "111");
    CHECK(told({rank_on({3})}) == "0");
}

TEST_CASE("cores: a bound rank's core is wanted by ranks that have no other, not by those that have") {
    CHECK(told({rank_on({0}), rank_on({0, 1}), rank_on({0, 1})}) == "111");
    CHECK(told({rank_on({0}), rank_on({0, 1, 2}), rank_on({0, 1, 2})}) == "000");
    CHECK(told({rank_on({0}), rank_on({0}), rank_on({0, 1, 2, 3})}) == "110");
    CHECK(told({rank_on({0, 1}), rank_on({1, 2}), rank_on({0, 2}), rank_on({0, 1, 2})}) ==
          "1111"); // four in three cores, though any two of the sets would do
}

TEST_CASE("cores: a progress thread wants a core as well, and other machines have cores of their own") {
    CHECK(told({rank_on({0}, 2), rank_on({1})}) == "10");
    CHECK(told({rank_on({0, 1}, 2), rank_on({2, 3}, 2)}) == "00");
    CHECK(told({rank_on({0}, 1, 7), rank_on({0}, 1, 8)}) == "00");
}

TEST_CASE("cores: any of the ranks, as each says by itself, in any mixture; and of 16,384 ranks") {
    std::mt19937 random(5);
    auto const below = [&](std::size_t n) { return static_cast<int>(random() % n); };
    for (int round = 0; round < 300; ++round) {
        std::vector<cores_of_rank> ranks;
        for (int r = 0; r < 2 + round % 7; ++r) {
            std::vector<int> cores;
            for (int core = 0; core < 9; ++core)
                if (below(3) == 0) cores.push_back(core * 100);
            if (cores.empty()) cores.push_back(3);
            ranks.push_back(rank_on(cores, 1 + below(2), static_cast<std::uint64_t>(below(2))));
            if (below(3) == 0) ranks.push_back(ranks[static_cast<std::size_t>(below(ranks.size()))]);
        }
        (void)told(ranks);
    }
    std::vector<cores_of_rank> many; // a core each, on 2,048 machines
    for (int r = 0; r < 16'384; ++r)
        many.push_back(rank_on({r % 8}, 1, static_cast<std::uint64_t>(r / 8) * 77));
    CHECK_FALSE(herring::detail::any_oversubscribed(many));
    many[12'345].cores = many[12'344].cores;
    CHECK(herring::detail::any_oversubscribed(many));
}

TEST_CASE("cores: how many all ranks share, if they are of one machine") {
    using herring::detail::cores_of_all;
    CHECK(cores_of_all(std::vector{rank_on({0, 1}), rank_on({0, 1}), rank_on({0, 1})}) == 2);
    CHECK(cores_of_all(std::vector{rank_on({0}), rank_on({0}), rank_on({5})}) == 2);
    CHECK(cores_of_all(std::vector{rank_on({0}, 1, 7), rank_on({0}, 1, 8)}) == 0);
    for (int const ranks : {2, 4}) { // as all ranks are told
        auto const body = [](herring::world& w) {
            ::cpu_set_t mine;
            if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return 1;
            int core = 0;
            while (!CPU_ISSET(core, &mine)) ++core;
            CPU_ZERO(&mine);
            CPU_SET(core, &mine);
            if (::sched_setaffinity(0, sizeof mine, &mine) != 0) return 1;
            herring::detail::core_sharing const told = herring::detail::share_cores(w, 1);
            return told.mine && told.any && told.all == 1 ? 0 : 2;
        };
        CHECK(herring::launch_threads(ranks, body) == 0);
    }
}

TEST_CASE("cores: what a rank tells of itself") {
    auto const here = cores_of_rank::here(2);
    CHECK(here.threads == 2);
    CHECK(CPU_COUNT(&here.cores) == herring::detail::usable_cores());
    CHECK(here.machine == cores_of_rank::here(1).machine);
    CHECK(rank_on({}).bytes().size() == 16);
    CHECK(rank_on({7}).bytes().size() == 17);
    CHECK(rank_on({1023}).bytes().size() == sizeof(cores_of_rank));
}

namespace {

// Answers as waiting::spin does, and keeps what it is told.
struct listening {
    using axis = herring::axes::waiting;
    static inline std::atomic<int> oversubscribed{0}, asked{0};
    herring::wait_action next(std::uint32_t /*idle_rounds*/, std::int64_t /*idle_nanoseconds*/,
                              bool is_oversubscribed) const noexcept {
        ++asked;
        if (is_oversubscribed) ++oversubscribed;
        return herring::wait_action::yield;
    }
};

} // namespace

TEST_CASE("cores: a reducer whose ranks are bound to a core each tells its waiting policy so") {
    ::cpu_set_t usable;
    REQUIRE(::sched_getaffinity(0, sizeof usable, &usable) == 0);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &usable)) cores.push_back(core);
    if (cores.size() < 2) {
        MESSAGE("needs two cores; not run");
        return;
    }
    for (bool const together : {false, true}) {
        CAPTURE(together);
        auto const body = [&](herring::world& w) {
            ::cpu_set_t mine; // as mpirun --bind-to core
            CPU_ZERO(&mine);
            CPU_SET(cores[together ? 0 : static_cast<std::size_t>(w.rank())], &mine);
            if (::sched_setaffinity(0, sizeof mine, &mine) != 0) return 1;
            herring::reducer<float, herring::transport::inproc, listening, herring::update::sum> reduce(w);
            w.barrier();
            if (w.rank() == 0)
                listening::asked = listening::oversubscribed = 0; // construction asks about both
            w.barrier();
            for (int i = 0; i < 100; ++i)
                if (reduce.all_reduce(1.0f) != 2) return 2;
            return 0;
        };
        REQUIRE(herring::launch_threads(2, body) == 0);
        REQUIRE(listening::asked > 0);
        CHECK((listening::oversubscribed == listening::asked) == together);
        CHECK((listening::oversubscribed == 0) == !together);
    }
}

TEST_CASE("cores: what no rank says of its cores is refused") {
    cores_of_rank mine;
    mine.threads = 3;
    CPU_SET(5, &mine.cores);
    cores_of_rank read;
    REQUIRE(read.read(mine.bytes()));
    CHECK(read.threads == 3);
    CHECK(CPU_EQUAL(&read.cores, &mine.cores));
    CHECK_FALSE(read.read(mine.bytes().first(15)));
    CHECK_FALSE(read.read({}));
    std::vector<std::byte> const longer(sizeof mine + 1);
    CHECK_FALSE(read.read(longer));
    for (std::int64_t const threads :
         {std::int64_t{-1}, cores_of_rank::most_threads + 1, std::numeric_limits<std::int64_t>::max()}) {
        mine.threads = threads; // a sum of them would leave 64 bits
        CHECK_FALSE(read.read(mine.bytes()));
    }
}
