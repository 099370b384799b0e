// herring: tests of control/rendezvous/carried_world.hpp: groups over control connections of which the test has one end.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/carried_world.hpp"

#include "herring/control/rendezvous/rendezvous.hpp"
#include "herring/world.hpp"

#include "doctest/doctest.h"

#include "control_peer.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace herring;
using namespace std::chrono_literals;
namespace rendezvous = herring::detail::rendezvous;
namespace wire = herring::detail::wire;
using detail::split_choice;
using wire::message_kind;

namespace {

constexpr auto plenty = 20s;
constexpr failure_detector_options patient{
    .peer_timeout = 20s, .heartbeat = 20ms, .reply_timeout = 100ms, .verdict_timeout = 10s};

world join(int rank, int size, control_listener const& hub) {
    rendezvous::settings made;
    made.rank = rank;
    made.size = size;
    made.addresses = detail::fixed_array<detail::endpoint>(1);
    made.addresses[0] = hub.at;
    made.address_text = hub.at.text();
    made.node = made.boot = "here";
    made.deadline = herring::clock::now() + plenty;
    made.asked.detector = patient;
    made.times = detail::resolve(made.asked);
    if (rank == 0) made.listeners.emplace_back(hub.socket);
    return world(rendezvous::join_world(std::move(made)));
}

/// Rank 0 in the hands of the test, and the library's rank 1 of a world of three.
struct stage {
    control_listener hub{};
    control_peer rank_0{};
    std::optional<world> rank_1{};
    stage() {
        std::jthread const other([&] {
            rank_0.let_in(hub.socket, nullptr);
            hub.close();
            rank_0.say(
                message_kind::welcome, 0,
                wire::welcome{1, detail::resolve({.detector = patient}), {0, 0, 0}, {0, 0, 0}}.write());
        });
        rank_1.emplace(join(1, 3, hub));
    }
    /// The result of a split by which ranks 1 and 2 are in group 7.
    static detail::byte_buffer result() {
        rendezvous::pending_collective all(3);
        all.add(0, message_kind::split, split_choice{-1, 0, 0}.write_result());
        for (int r = 1; r < 3; ++r) all.add(r, message_kind::split, split_choice{4, 0, 7}.write_result());
        return all.take();
    }
};

template <class Call> failure thrown_by(Call&& call) {
    try {
        call();
    } catch (error const& why) {
        return why.why();
    }
    return {};
}

} // namespace

TEST_CASE("carried_world: what comes right behind the result of a split finds the group") {
    stage s;
    failure const theirs = failure::make(errc::peer_lost, -1, 1, "control", "it is gone");
    std::jthread const other([&] {
        control_peer::heard const asked = s.rank_0.await(message_kind::split);
        split_choice said;
        CHECK(said.read(asked.body));
        CHECK((said.colour == 4 && said.key == -2));
        detail::byte_buffer both = s.rank_0.bytes_of(message_kind::collective_result, 1, stage::result());
        both.append(
            s.rank_0.bytes_of(message_kind::fail, wire::sequence_in(7, 0), wire::write_failure(theirs)));
        s.rank_0.send(both);
        CHECK(wire::world_of(s.rank_0.await(message_kind::leave).front.sequence) == 7);
        CHECK(s.rank_0.await(message_kind::leave).front.sequence == 1); // goodbye
        s.rank_0.close();
    });
    {
        world group = s.rank_1->split(4, -2);
        CHECK(group.size() == 2);
        CHECK(group.rank() == 0);
        auto const until = herring::clock::now() + plenty;
        while (group.failed() == nullptr && herring::clock::now() < until) std::this_thread::yield();
        REQUIRE(group.failed() != nullptr);
        CHECK(group.failed()->peer == 1);
        CHECK(s.rank_1->failed() == nullptr);
    }
    s.rank_1.reset();
}

TEST_CASE("carried_world: a rank that is out of a split by the time of its result leaves the group") {
    stage s;
    std::jthread const other([&] {
        (void)s.rank_0.await(message_kind::split);
        (void)s.rank_0.await(message_kind::fail); // rank 0 was silent for too long
        s.rank_0.say(message_kind::collective_result, 1, stage::result());
        CHECK(s.rank_0.await(message_kind::leave).front.sequence == wire::sequence_in(7, 0));
        s.rank_0.say(message_kind::fail, wire::sequence_in(7, 0), // of a world that it has left
                     wire::write_failure(failure::make(errc::peer_lost, -1, 1, "control", "")));
        s.rank_0.close();
    });
    failure const seen = thrown_by([&] { (void)s.rank_1->split(4, 0, 50ms); });
    CHECK(seen.what == errc::timeout);
    CHECK(seen.peer == 0);
}

TEST_CASE("carried_world: of a group that a rank has left it says nothing more") {
    stage s;
    std::jthread const other([&] {
        (void)s.rank_0.await(message_kind::split);
        s.rank_0.say(message_kind::collective_result, 1, stage::result());
        CHECK(s.rank_0.await(message_kind::leave).front.sequence == wire::sequence_in(7, 0));
        s.rank_0.say(message_kind::probe, wire::sequence_in(7, 1)); // it crosses the goodbye
        s.rank_0.say(message_kind::probe, wire::sequence_in(0, 1));
        // The reply to the later of the probes comes behind all that is said of the group.
        for (bool barrier = false, reply = false; !barrier || !reply;) {
            std::optional<control_peer::heard> const next = s.rank_0.hear();
            REQUIRE(next.has_value());
            if (next->front.type != message_kind::heartbeat) CHECK(wire::world_of(next->front.sequence) == 0);
            barrier = barrier || next->front.type == message_kind::barrier;
            reply = reply || next->front.type == message_kind::probe_reply;
        }
        s.rank_0.say(message_kind::collective_result, 2);
        CHECK(s.rank_0.await(message_kind::leave).front.sequence == 1); // goodbye
        s.rank_0.close();
    });
    {
        auto group = std::make_unique<world>(s.rank_1->split(4));
        world handle(*group, detail::for_reducer{}); // as a reducer that outlives its world
        group.reset();
        handle.fail(failure::make(errc::bad_argument, 0, -1, "test", "too late"));
        s.rank_1->barrier();
    }
    s.rank_1.reset();
}

TEST_CASE("carried_world: results of splits that no rank 0 sends are its violation of the protocol") {
    auto const with = [](std::vector<split_choice> const& choices) {
        rendezvous::pending_collective all(3);
        for (int r = 0; r < 3; ++r)
            all.add(r, message_kind::split, choices[static_cast<std::size_t>(r)].write_result());
        return all.take();
    };
    std::vector<detail::byte_buffer> bad;
    bad.push_back(with({{-1, 0, 0}, {4, 0, 0}, {4, 0, 7}}));                    // a group without a number
    bad.push_back(with({{-1, 0, 0}, {-1, 0, 7}, {4, 0, 7}}));                   // a number without a group
    bad.push_back(with({{-1, 0, 0}, {4, 0, wire::most_world + 1}, {4, 0, 7}})); // too large
    bad.emplace_back();                                                         // of a barrier
    for (detail::byte_buffer const& body : bad) {
        stage s;
        std::jthread const other([&] {
            (void)s.rank_0.await(message_kind::split);
            s.rank_0.say(message_kind::collective_result, 1, body);
            while (s.rank_0.hear()) {
            }
            s.rank_0.close();
        });
        CHECK(thrown_by([&] { (void)s.rank_1->split(4); }).what == errc::protocol);
        s.rank_1.reset();
    }
}

TEST_CASE("carried_world: a message of a world that its sender is not in ends the sender's worlds") {
    control_listener hub;
    std::optional<world> rank_0;
    control_peer rank_1, rank_2;
    {
        std::jthread const first([&] { rank_0.emplace(join(0, 3, hub)); });
        std::jthread const second([&] { rank_1.join(1, 3, hub.at); });
        rank_2.join(2, 3, hub.at);
    }
    // Ranks 0 and 2 are in group 1, rank 1 in group 2.
    rank_1.say(message_kind::split, 1, split_choice{5, 0}.write());
    rank_2.say(message_kind::split, 1, split_choice{3, 0}.write());
    world group = rank_0->split(3);
    CHECK(group.size() == 2);
    rank_2.say(message_kind::barrier, wire::sequence_in(1, 1));
    group.barrier();
    rank_1.say(message_kind::barrier, wire::sequence_in(2, 1)); // alone there
    CHECK(rank_1.await(message_kind::collective_result).front.sequence == 1);
    CHECK(rank_1.await(message_kind::collective_result).front.sequence == wire::sequence_in(2, 1));
    rank_1.say(message_kind::barrier, wire::sequence_in(1, 2));
    while (rank_0->failed() == nullptr) std::this_thread::yield();
    CHECK(rank_0->failed()->what == errc::protocol);
    CHECK(rank_0->failed()->peer == 1);
    CHECK(group.failed() == nullptr);
    rank_2.say(message_kind::barrier, wire::sequence_in(1, 2));
    group.barrier();
    rank_2.close();
    while (group.failed() == nullptr) std::this_thread::yield();
    CHECK(group.failed()->peer == 1);
}
