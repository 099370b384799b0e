// herring: tests of engine/tracer.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/tracer.hpp"

#include "herring/trace/trace.hpp"

#include "doctest/doctest.h"

#include <type_traits>
#include <utility>
#include <vector>

using namespace herring;
using namespace herring::detail;

namespace {
struct noting {
    using axis = axes::trace;
    static constexpr trace_facts facts{.details = true};
    std::vector<std::pair<trace_event, trace_details>> seen;
    void record(trace_event event, trace_details const& of) noexcept { seen.push_back({event, of}); }
};

/// Five executions, of which the one of number 2 is a node's own, and all are submitted.
struct five {
    execution_ledger ledger{8};
    five() {
        for (std::uint32_t b = 0; b < 5; ++b) {
            execution e;
            e.label = 10 + b;
            e.path = b == 2 ? route::local : route::two_hop;
            ledger.request(e);
        }
        ledger.take_requests();
    }
};
completion message_of(std::uint64_t number, std::uint64_t networked) {
    completion done{};
    done.what = completion::received;
    done.bytes = 40;
    done.tag = tag_of(message::push, number, 7, networked);
    return done;
}
} // namespace

TEST_CASE("tracer: of a policy without details it is empty") {
    static_assert(std::is_empty_v<tracer<trace::off>>);
}

TEST_CASE("tracer: a message has one name at both ends, whatever the execution") {
    noting kept;
    tracer<noting> told(kept, 2);
    five const has;
    told.sends(1, message::push, 77, 3, has.ledger.at(4), 4, 40);
    told.sends(1, message::push, 77, 3, has.ledger.at(4), 4, 40); // the transport did not take it yet
    told.arrived({message::push, 0, 0, 0}, message_of(77, 3), 1, has.ledger);
    told.sends(1, message::result, 77, 3, has.ledger.at(4), 4, 40);
    REQUIRE(kept.seen.size() == 3);
    auto const& [first, sent] = kept.seen[0];
    CHECK(first == trace_event::part_sent);
    CHECK(sent.peer == 3);
    CHECK(sent.bytes == 40);
    CHECK(sent.index == 14);
    auto const& [second, came] = kept.seen[1];
    CHECK(second == trace_event::part_arrived);
    CHECK(came.message == sent.message);
    CHECK(came.execution == 4); // the fourth that is networked
    CHECK(came.index == 14);
    CHECK(kept.seen[2].first == trace_event::result_sent);
    CHECK(kept.seen[2].second.message != sent.message);
}

TEST_CASE("tracer: what comes early belongs to an execution that is not here yet") {
    noting kept;
    tracer<noting> told(kept, 2);
    execution_ledger all{8};
    execution e;
    e.path = route::two_hop;
    for (int n = 0; n < 5; ++n) all.request(e);
    all.take_requests();
    told.arrived({message::push, 0, 0, 0}, message_of(1, 6), 1, all);
    REQUIRE(kept.seen.size() == 1);
    CHECK(kept.seen[0].second.execution == 6);
    CHECK(kept.seen[0].second.index == no_bucket);
}

TEST_CASE(
    "tracer: with executions of a node's own, what is here is found, and what comes early belongs to none") {
    noting kept;
    tracer<noting> told(kept, 2);
    five const has;
    for (std::uint64_t const networked : {0u, 1u, 2u, 3u, 4u, 5u})
        told.arrived({message::push, 0, 0, 0}, message_of(networked, networked), 1, has.ledger);
    REQUIRE(kept.seen.size() == 6);
    std::uint64_t const due[] = {0, 1, 3, 4, no_execution, no_execution};
    for (std::size_t n = 0; n < 6; ++n) {
        CAPTURE(n);
        CHECK(kept.seen[n].second.execution == due[n]);
        CHECK(kept.seen[n].second.index == (n < 4 ? 10 + due[n] : no_bucket));
    }
}

TEST_CASE("tracer: a stall is told once a push, and whom the rank waits for when that has changed") {
    noting kept;
    tracer<noting> told(kept, 2);
    five const has;
    for (int tries = 0; tries < 3; ++tries) {
        told.stalled(0, 5, 9, has.ledger.at(1), 1);
        told.stalled(1, 6, 9, has.ledger.at(1), 1);
        told.waits_for(6, has.ledger);
    }
    told.stalled(0, 5, 10, has.ledger.at(1), 1);
    told.waits_for(-1, has.ledger);
    told.waits_for(5, has.ledger);
    REQUIRE(kept.seen.size() == 5);
    CHECK(kept.seen[0].first == trace_event::credit_stall);
    CHECK(kept.seen[0].second.peer == 5);
    CHECK(kept.seen[2].first == trace_event::waits_for);
    CHECK(kept.seen[2].second.index == 10); // the oldest that is not released
    CHECK(kept.seen[3].second.message == kept.seen[0].second.message + 1);
    CHECK(kept.seen[4].second.peer == 5);
}
