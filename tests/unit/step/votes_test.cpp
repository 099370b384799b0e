// herring: tests of step/votes.hpp over a collective that ends when a test says so; tests/conformance/sync_test.cpp has real ones.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/votes.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace votes_test {

using herring::status;
using herring::time_point;
using herring::sync::ballot;

/// What a session and two collectives were asked for.
struct world {
    bool can_travel = true;
    bool fails = false;
    int submitted = 0, run = 0, finished = 0;
    std::uint64_t digest = 0;
    ballot cast{}, others{};
    void* result = nullptr;
    std::size_t bytes = 0;

    status end() {
        if (fails)
            return status(herring::failure::make(herring::errc::peer_lost, 0, 1, "wait", {"rank 1 is gone"}));
        ballot all = cast;
        for (std::size_t i = 0; i < ballot::bits; ++i)
            if (others.has(i)) all.set(i);
        std::memcpy(result, &all, sizeof all);
        return {};
    }
};
struct session {
    world& of;
    template <class Operation> static constexpr std::uint8_t number_of() noexcept { return 7; }
    status finish(std::uint64_t executions, time_point) {
        CHECK(executions == 3);
        ++of.finished;
        return of.end();
    }
};
template <class Element> struct collective {
    explicit collective(world&) {}
    static void take(world& of, herring::detail::collective_program const& program,
                     herring::detail::collective_buffers const& memory, std::size_t elements) {
        CHECK(program.operation == 7);
        CHECK(std::string(program.name) == "wait");
        std::memcpy(&of.cast, memory.in, sizeof of.cast);
        of.digest = program.digest;
        of.result = memory.out;
        of.bytes = elements * sizeof(Element);
    }
    std::uint64_t submit(session& on, herring::detail::collective_program const& program,
                         herring::detail::collective_buffers const& memory, std::size_t elements) {
        ++on.of.submitted;
        take(on.of, program, memory, elements);
        return on.of.can_travel ? 3 : 0;
    }
    status run(session& on, herring::detail::collective_program const& program,
               herring::detail::collective_buffers const& memory, std::size_t elements, time_point) {
        ++on.of.run;
        take(on.of, program, memory, elements);
        return on.of.end();
    }
};
template <class Element, bool Travel>
using votes = herring::detail::votes<Element, collective<Element>, Travel>;

ballot of(std::size_t bucket) {
    ballot one;
    one.set(bucket);
    return one;
}
/// What a policy was told.
struct told {
    int times = 0;
    ballot last{};
    auto by() {
        return [this](ballot const& any) {
            ++times;
            last = any;
        };
    }
};

} // namespace votes_test

using namespace votes_test;

TEST_CASE("votes: all are known when a ballot is cast, where they do not travel") {
    world all{.others = votes_test::of(300)};
    session on{all};
    collective<float> shared(all);
    votes<float, false> ballots(all);
    told policy;
    CHECK(ballots.cast(on, shared, votes_test::of(5), 99, time_point(), policy.by()).ok());
    CHECK(policy.times == 1);
    CHECK((policy.last.has(5) && policy.last.has(300) && !policy.last.has(6)));
    CHECK(all.digest == 99);
    CHECK(all.submitted == 0);
    CHECK(ballots.finish(on, time_point(), policy.by()).ok());
    CHECK(policy.times == 1);
    CHECK(all.finished == 0);
}

TEST_CASE("votes: that travel are told once, when they are finished") {
    world all{.others = votes_test::of(1)};
    session on{all};
    collective<double> shared(all);
    votes<double, true> ballots(all);
    told policy;
    CHECK(ballots.finish(on, time_point(), policy.by()).ok()); // none do yet
    CHECK(policy.times == 0);
    for (std::size_t step = 1; step <= 2; ++step) {
        CHECK(ballots.cast(on, shared, votes_test::of(8 + step), 4, time_point(), policy.by()).ok());
        CHECK(policy.times == static_cast<int>(step) - 1);
        CHECK(ballots.finish(on, time_point(), policy.by()).ok());
        CHECK(policy.times == static_cast<int>(step));
        CHECK((policy.last.has(8 + step) && policy.last.has(1) && !policy.last.has(7 + step)));
        CHECK(ballots.finish(on, time_point(), policy.by()).ok());
        CHECK(policy.times == static_cast<int>(step));
    }
    CHECK(all.run == 0);
}

TEST_CASE("votes: what cannot travel is waited for") {
    world all{.can_travel = false};
    session on{all};
    collective<float> shared(all);
    votes<float, true> ballots(all);
    told policy;
    CHECK(ballots.cast(on, shared, votes_test::of(2), 4, time_point(), policy.by()).ok());
    CHECK(policy.times == 1);
    CHECK(all.submitted == 1);
    CHECK(all.run == 1);
    CHECK(ballots.finish(on, time_point(), policy.by()).ok());
    CHECK(all.finished == 0);
}

TEST_CASE("votes: of a world that has ended nobody is told") {
    for (bool const travel : {false, true}) {
        world all{.can_travel = travel, .fails = true};
        session on{all};
        collective<float> shared(all);
        votes<float, true> ballots(all);
        told policy;
        CHECK(ballots.cast(on, shared, votes_test::of(2), 4, time_point(), policy.by()).ok() == travel);
        CHECK(ballots.finish(on, time_point(), policy.by()).ok() != travel);
        CHECK(policy.times == 0);
    }
}

TEST_CASE("votes: a ballot fits elements of any size") {
    struct large {
        unsigned char bytes[24];
    };
    world all;
    session on{all};
    collective<large> shared(all);
    votes<large, false> ballots(all);
    told policy;
    CHECK(ballots.cast(on, shared, votes_test::of(511), 0, time_point(), policy.by()).ok());
    CHECK(all.bytes == 72);
    CHECK(policy.last.has(511));
}
