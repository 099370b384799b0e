// herring: tests of engine/driver.hpp: deadlines end, blame is put on the right rank, and better news is waited for.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/driver.hpp"

#include "herring/waiting/adaptive.hpp"
#include "herring/waiting/block.hpp"

#include "doctest/doctest.h"

using namespace herring;

namespace {
// An engine that waits for whom it is told to, for ever or until a number of polls.
struct stand_in {
    blame who{.rank = 3, .doubt = 0, .gone = false, .text = "it has not submitted this operation"};
    failure suspected{};
    failure ended{};
    int polls_to_go = 1 << 30;
    std::uint64_t done = 0;
    int sleeps = 0;

    std::size_t poll() noexcept {
        if (--polls_to_go > 0) return 0;
        ++done;
        return 1;
    }
    std::uint64_t released() const noexcept { return done; }
    failure const* failed() const noexcept { return ended.what == errc::ok ? nullptr : &ended; }
    void fail(failure const& why, bool = true) noexcept { ended = why; }
    failure const& suspicion() const noexcept { return suspected; }
    blame waiting_for() noexcept { return who; }
    void charge(int, std::uint64_t) noexcept {}
    void sleep(time_point) noexcept { ++sleeps; }
};

template <class Waiting> void wait_for(stand_in& engine, world& alone, std::chrono::milliseconds most) {
    detail::caller_driver<stand_in, Waiting>(engine, alone, false).until(1, clock::now() + most);
}
} // namespace

TEST_CASE("driver: ends when the engine is done") {
    world alone;
    stand_in engine{.polls_to_go = 1000};
    wait_for<waiting::block>(engine, alone, std::chrono::seconds(60));
    CHECK(engine.done == 1);
    CHECK(engine.failed() == nullptr);
    CHECK(engine.sleeps > 900);
}

TEST_CASE("driver: at the deadline it names who is missing") {
    world alone;
    stand_in engine;
    wait_for<waiting::adaptive>(engine, alone, std::chrono::milliseconds(10));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.ended.what == errc::timeout);
    CHECK(engine.ended.peer == 3);
}

TEST_CASE("driver: with doubt, another rank's verdict goes first") {
    world alone;
    stand_in engine{.who = {.rank = 3, .doubt = 2, .gone = false, .text = "it has not returned the sum"}};
    alone.fail(failure::make(errc::timeout, 1, 2, "wait", "it has not submitted this operation"));
    wait_for<waiting::adaptive>(engine, alone, std::chrono::milliseconds(0));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.ended.peer == 2);
}

TEST_CASE("driver: a lost peer ends the wait after a short while, with the reason") {
    world alone;
    stand_in engine;
    engine.suspected = failure::make(errc::peer_lost, 0, 5, "reduce", "its connection closed");
    auto const start = clock::now();
    wait_for<waiting::adaptive>(engine, alone, std::chrono::seconds(60));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.ended.peer == 5);
    CHECK(clock::now() - start < std::chrono::seconds(10));
}
