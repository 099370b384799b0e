// herring: tests of engine/driver.hpp: deadlines end, the right rank is suspected, and better news is waited for.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/driver.hpp"

#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

#include <unistd.h>

using namespace herring;

namespace {
// An engine that waits for whom it is told to, for ever or until a number of polls.
struct stand_in {
    // One of two nodes, alone on its own: it sleeps in its transport.
    struct place {
        int local_size = 1;
        int nodes() const noexcept { return 2; }
    };
    struct line {
        int sleeps = 0;
        void wait(time_point) noexcept {
            if (++sleeps > 10'000) ::usleep(200); // who waits for seconds need not be busy
        }
        std::uint32_t listen() noexcept { return 0; }
        void sleep(std::uint32_t, time_point) noexcept {}
        void wake() noexcept {}
    };
    struct account {
        std::atomic<std::uint64_t> count{0};
        std::atomic<std::uint64_t> const& released() const noexcept { return count; }
        std::uint64_t finished() const noexcept { return count; }
    };
    struct ends {
        failure suspicion{};
    };
    struct parts {
        static constexpr bool is_traced = true;
        struct host_memory {
            time_point nap(time_point until) noexcept { return until; }
        };
        wait_target target{.rank = 3, .gone = false, .text = "it has not submitted this operation"};
        place who{};
        line transport{}, node{};
        host_memory memory{};
        account ledger{};
        ends failures{};
        failure ended{};
        struct {
            int waited_for = -1;
            void waits_for(int rank, account const&) noexcept { waited_for = rank; }
        } trace{};

        wait_target waiting_for() noexcept { return target; }
        void record_wait(int, std::uint64_t) noexcept {}
        void sleep_on_transport(time_point until) noexcept { transport.wait(until); }
        void end(failure const& why, bool = true) noexcept { ended = why; }
        failure told(failure const& why) const noexcept { return detail::as_seen_by(why, 0); }
    };
    int polls_to_go = 1 << 30;
    parts own{};

    parts& core() noexcept { return own; }
    std::size_t poll() noexcept {
        if (--polls_to_go > 0) return 0;
        ++own.ledger.count;
        return 1;
    }
    std::uint64_t released() const noexcept { return own.ledger.count; }
    failure const* failed() const noexcept { return own.ended.what == errc::ok ? nullptr : &own.ended; }
    int sleeps() const noexcept { return own.transport.sleeps; }
};

// A world whose verdict, after some looks, is that it was rank 2.
struct judge : detail::no_control {
    int looks_needed = 5;
    int asked = 0;
    bool held_up = false; // by the network
    detail::suspicion_report heard{};
    std::uint64_t said_when_asked = 0;

    world make() {
        detail::membership made;
        if (held_up) made.times.detector.verdict_timeout = std::chrono::milliseconds(0);
        made.control = detail::control_handle::of(*this);
        return world(std::move(made));
    }
    void report_suspicion(detail::suspicion_report& of) noexcept {
        heard = of;
        of.probe = 7;
        of.held_up = held_up;
        probe_.store(7);
        said_when_asked = waits_.load();
        if (++asked < looks_needed) return;
        failure_ =
            failure::make(errc::timeout, 0, 2, "wait", "rank 3 waits for rank 2, which has not called");
        first_failure_.store(1);
    }
    std::uint64_t says() const noexcept { return waits_.load(); }
};

template <class Waiting> void wait_for(stand_in& engine, world& alone, std::chrono::milliseconds most) {
    detail::caller_driver<stand_in, Waiting>(engine, alone, false).until(1, clock::now() + most);
}
} // namespace

TEST_CASE("driver: ends when the engine is done") {
    world alone;
    stand_in engine{.polls_to_go = 1000};
    wait_for<waiting::block>(engine, alone, std::chrono::seconds(60));
    CHECK(engine.released() == 1);
    CHECK(engine.failed() == nullptr);
    CHECK(engine.sleeps() > 900);
}

TEST_CASE("driver: at the deadline it names who is missing") {
    world alone;
    stand_in engine;
    wait_for<waiting::adaptive>(engine, alone, std::chrono::milliseconds(10));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.own.ended.what == errc::timeout);
    CHECK(engine.own.ended.peer == 3);
}

TEST_CASE(
    "driver: at the deadline it asks the world, tells it whom it waits for, and takes the world's verdict") {
    judge world_of_judge;
    world here = world_of_judge.make();
    stand_in engine;
    wait_for<waiting::block>(engine, here, std::chrono::milliseconds(1));
    REQUIRE(engine.failed() != nullptr);
    CHECK(world_of_judge.heard.why.what == errc::timeout);
    CHECK(world_of_judge.heard.why.peer == 3);
    CHECK_FALSE(world_of_judge.heard.certain);
    CHECK(world_of_judge.asked == 5);
    // It looked around after it was asked, and said so.
    detail::wait_report const said = detail::wait_report::read(world_of_judge.said_when_asked, 7);
    CHECK(said.state == detail::rank_state::waiting);
    CHECK(said.awaits == 3);
    CHECK(engine.own.ended.peer == 2);
    // And it waits no more.
    CHECK(world_of_judge.says() == detail::wait_report::not_waiting);
}

TEST_CASE("driver: without a verdict it ends by itself, and a deadline in the far future does not overflow") {
    judge silent_one;
    silent_one.looks_needed = 1 << 30;
    world here = silent_one.make();
    stand_in engine;
    wait_for<waiting::block>(engine, here, std::chrono::milliseconds(0));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.own.ended.peer == 3);
    CHECK(engine.own.ended.what == errc::timeout);

    world alone;
    stand_in patient{.polls_to_go = 100};
    detail::caller_driver<stand_in, waiting::block>(patient, alone, false).until(1, time_point::max());
    CHECK(patient.failed() == nullptr);
}

TEST_CASE("driver: a verdict that the network holds up is awaited") {
    judge far_away;
    far_away.held_up = true;
    world here = far_away.make();
    stand_in engine;
    wait_for<waiting::block>(engine, here, std::chrono::milliseconds(0));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.own.ended.peer == 2);
}

TEST_CASE("driver: where nobody can be asked, it ends at the deadline by itself") {
    world deaf{detail::membership{}};       // its backend does nothing: no probe, no failure
    stand_in engine{.polls_to_go = 50'000}; // without the end, it returns after so many polls
    wait_for<waiting::block>(engine, deaf, std::chrono::milliseconds(10));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.own.ended.what == errc::timeout);
    CHECK(engine.own.ended.peer == 3);
}

TEST_CASE("driver: a peer that is lost or gone is a certain suspicion_report, at once") {
    for (bool const gone : {true, false}) {
        judge world_of_judge;
        world here = world_of_judge.make();
        stand_in engine;
        engine.own.target.gone = gone;
        if (!gone)
            engine.own.failures.suspicion =
                failure::make(errc::peer_lost, 0, 5, "reduce", "its connection closed");
        wait_for<waiting::block>(engine, here, std::chrono::seconds(60));
        CHECK(world_of_judge.heard.certain);
        CHECK(world_of_judge.heard.why.what == errc::peer_lost);
        CHECK(world_of_judge.heard.why.peer == (gone ? 3 : 5));
        CHECK(engine.own.ended.peer == 2);
    }
}

TEST_CASE("driver: a lost peer ends the wait after a short while, with the reason") {
    world alone;
    stand_in engine;
    engine.own.failures.suspicion = failure::make(errc::peer_lost, 0, 5, "reduce", "its connection closed");
    auto const start = clock::now();
    wait_for<waiting::adaptive>(engine, alone, std::chrono::seconds(60));
    REQUIRE(engine.failed() != nullptr);
    CHECK(engine.own.ended.peer == 5);
    CHECK(clock::now() - start < std::chrono::seconds(10));
}
