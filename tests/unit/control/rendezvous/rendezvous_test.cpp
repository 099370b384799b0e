// herring: tests of control/rendezvous/rendezvous.hpp: heartbeats, silence at either end, root causes, with short times.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/rendezvous.hpp"

#include "herring/machine/address.hpp"
#include "herring/world.hpp"

#include "control_peer.hpp"
#include "deaf_socket.hpp"
#include "doctest/doctest.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using herring::errc;
using herring::failure;
using herring::world;
using std::chrono::milliseconds;
namespace detail = herring::detail;
namespace rendezvous = herring::detail::rendezvous;

namespace {

// Longer than anything here takes: only a defect waits for it.
constexpr milliseconds plenty{30'000};

constexpr herring::failure_detector_options quick{.peer_timeout = milliseconds(400),
                                                  .heartbeat = milliseconds(20),
                                                  .reply_timeout = milliseconds(100),
                                                  .verdict_timeout = milliseconds(10'000)};
// No rank is given up for its silence there.
constexpr herring::failure_detector_options forgiving{.peer_timeout = milliseconds(20'000),
                                                      .heartbeat = milliseconds(20),
                                                      .reply_timeout = milliseconds(100),
                                                      .verdict_timeout = milliseconds(10'000)};

// The first retransmission is due after 200 ms, before anybody is silent.
constexpr herring::failure_detector_options lossy{.peer_timeout = milliseconds(20'000),
                                                  .heartbeat = milliseconds(20),
                                                  .reply_timeout = milliseconds(450),
                                                  .verdict_timeout = milliseconds(10'000)};

using listener = control_listener;

/// A real rank. Rank 0 takes the listener over.
world join(int rank, int size, listener const& hub, herring::failure_detector_options const& times,
           milliseconds most = plenty, std::string const& secret = {}, std::string const& also = {}) {
    rendezvous::settings made;
    made.rank = rank;
    made.size = size;
    made.addresses = herring::detail::fixed_array<detail::endpoint>(1);
    made.addresses[0] = hub.at;
    made.address_text = hub.at.text();
    made.node = made.boot = "here";
    made.deadline = herring::clock::now() + most;
    made.asked.detector = times;
    made.times = detail::resolve(made.asked);
    if (rank == 0) made.listeners.emplace_back(hub.socket);
    if (!secret.empty()) made.secret.emplace(detail::secrets{detail::secret(secret), {}, {}});
    if (!also.empty()) made.secret->also.emplace(also);
    return world(rendezvous::join_world(std::move(made)));
}

/// The other end of a connection, in the hands of the test.
struct puppet : control_peer {
    /// As a rank that joins.
    void join(std::uint32_t as, std::uint32_t size, listener const& hub, detail::secret const* by = nullptr) {
        control_peer::join(as, size, hub.at, by);
    }

    /// As rank 0: lets one rank in.
    void let_in(listener const& own, std::uint32_t size, herring::failure_detector_options const& times,
                detail::secret const* by = nullptr) {
        control_peer::let_in(own.socket, by);
        ::close(own.socket);
        welcome(size, times);
    }
    void welcome(std::uint32_t size, herring::failure_detector_options const& times) {
        std::vector<int> const zeroes(size);
        say(rendezvous::message_kind::welcome, 0,
            rendezvous::welcome{1, detail::resolve({.detector = times}), zeroes, zeroes}.write());
    }

    void hears(bool again) { REQUIRE(set_deaf(socket, !again)); }
    /// Hears nothing for so long.
    void hears_after(milliseconds time) {
        std::this_thread::sleep_for(time);
        hears(true);
    }

    /// Beats until the other end closes or fails; answers `answer`, if any, to what is asked.
    void live(std::optional<detail::wait_report> answer = {}) {
        while (std::optional<heard> const next = hear()) {
            if (next->front.type == rendezvous::message_kind::heartbeat)
                say(rendezvous::message_kind::heartbeat, 0, {});
            if (next->front.type == rendezvous::message_kind::probe && answer)
                say(rendezvous::message_kind::probe_reply, next->front.sequence,
                    rendezvous::write_answer(*answer));
            if (next->front.type == rendezvous::message_kind::fail ||
                next->front.type == rendezvous::message_kind::leave)
                return;
        }
    }
};

/// Makes the worlds of real ranks 0 and 1 of three; rank 2 is a puppet.
struct stage {
    listener hub{};
    puppet rank_2{};
    std::optional<world> rank_0{}, rank_1{};

    explicit stage(herring::failure_detector_options const& times) {
        std::jthread first([&] { rank_0.emplace(join(0, 3, hub, times)); });
        std::jthread second([&] { rank_1.emplace(join(1, 3, hub, times)); });
        rank_2.join(2, 3, hub);
        first.join();
        second.join();
    }
};

using kind = rendezvous::message_kind;
detail::byte_buffer none() { return {}; }

/// Rank 0 of three; the others are puppets.
struct two_puppets {
    listener hub{};
    puppet rank_1{}, rank_2{};
    std::optional<world> rank_0{};
    milliseconds bound;

    explicit two_puppets(milliseconds peer_timeout) : bound(peer_timeout) {
        herring::failure_detector_options times = quick;
        times.peer_timeout = peer_timeout;
        std::jthread first([&] { rank_0.emplace(join(0, 3, hub, times)); });
        std::jthread second([&] { rank_1.join(1, 3, hub); });
        rank_2.join(2, 3, hub);
        first.join();
        second.join();
    }
    /// `say(puppet&)` for each of them, twenty times in `bound`, until rank 0 has failed.
    template <class Say> void speak(milliseconds most, Say const& say, std::vector<puppet*> const& who) {
        auto const until = herring::clock::now() + most;
        while (rank_0->failed() == nullptr && herring::clock::now() < until) {
            for (puppet* const one : who) say(*one);
            std::this_thread::sleep_for(bound / 20);
        }
    }
    void end() {
        for (puppet* const one : {&rank_1, &rank_2}) ::shutdown(one->socket, SHUT_RDWR);
        rank_0.reset();
    }
};

failure const& await_failure(world& w) {
    auto const until = herring::clock::now() + plenty;
    while (w.failed() == nullptr && herring::clock::now() < until) std::this_thread::yield();
    REQUIRE(w.failed() != nullptr);
    return *w.failed();
}

/// Accuses until there is a verdict.
failure const& verdict(world& by, int accused, bool certain = false) {
    detail::suspicion_report of;
    of.why = failure::make(certain ? errc::peer_lost : errc::timeout, by.rank(), accused, "wait",
                           "its part has not come within the deadline; look at that rank");
    of.certain = certain;
    auto const until = herring::clock::now() + plenty;
    while (by.failed() == nullptr && herring::clock::now() < until) {
        detail::detector(by).report_suspicion(of);
        std::this_thread::yield();
    }
    REQUIRE(by.failed() != nullptr);
    return *by.failed();
}

bool says(failure const& why, char const* text) {
    bool const found = std::strstr(why.text, text) != nullptr;
    if (!found) MESSAGE("'" << why.text << "' lacks '" << text << "'");
    return found;
}

} // namespace

TEST_CASE("rendezvous: a rank that falls silent ends the world in its name, on every rank") {
    stage s(quick);
    for (world* const w : {&*s.rank_0, &*s.rank_1}) {
        failure const& why = await_failure(*w);
        CHECK(why.what == errc::peer_lost);
        CHECK(why.peer == 2);
        CHECK(says(why, "no sign of life"));
    }
    CHECK(s.rank_2.await(rendezvous::message_kind::heartbeat).body.empty()); // it was told that rank 0 lives
    failure told;
    REQUIRE(rendezvous::read_failure(s.rank_2.await(rendezvous::message_kind::fail).body, 3, told));
    CHECK(told.peer == 2);
}

TEST_CASE("rendezvous: a rank that speaks is not missed") {
    herring::failure_detector_options times = quick;
    times.peer_timeout = milliseconds(2'000); // a machine that is busy takes a while to speak
    stage s(times);
    auto const until = herring::clock::now() + milliseconds(2'500);
    while (herring::clock::now() < until) {
        s.rank_2.await(rendezvous::message_kind::heartbeat);
        s.rank_2.say(rendezvous::message_kind::heartbeat, 0, {});
    }
    CHECK(s.rank_0->failed() == nullptr);
    CHECK(s.rank_1->failed() == nullptr);
    s.rank_2.say(rendezvous::message_kind::leave, 0, {}); // and who has said goodbye may be silent
    std::jthread leaves([&] { s.rank_1.reset(); });
    s.rank_2.await(rendezvous::message_kind::heartbeat);
    CHECK(s.rank_0->failed() == nullptr);
    ::close(std::exchange(s.rank_2.socket, -1));
    s.rank_0.reset();
    leaves.join();
}

TEST_CASE("rendezvous: a rank that is silent lives as long as another one hears its data") {
    constexpr milliseconds bound{800};
    two_puppets s(bound);
    detail::wire::signs_of_life heard;
    heard.add(2, 3);
    auto const begun = herring::clock::now();
    s.speak(2 * bound,
            [&](puppet& one) { one.say(kind::heartbeat, 0, &one == &s.rank_1 ? heard.write() : none()); },
            {&s.rank_1});
    CHECK(s.rank_0->failed() == nullptr);
    auto const until = herring::clock::now();
    std::jthread lives([&] { s.rank_1.live(); }); // which hears rank 2 no more
    failure const why = await_failure(*s.rank_0);
    CHECK(why.what == errc::peer_lost);
    CHECK(why.peer == 2);
    CHECK(herring::clock::now() - until >= bound / 2);
    CHECK(herring::clock::now() - begun >= 2 * bound + bound / 2);
    lives.join(); // told of the failure
    s.end();
}

TEST_CASE("rendezvous: where two ranks that live do not hear each other, it is the network between them") {
    constexpr milliseconds bound{1'000};
    two_puppets s(bound);
    detail::wire::signs_of_life cut;
    cut.cut_off = 2;
    s.speak(10 * bound,
            [&](puppet& one) { one.say(kind::heartbeat, 0, &one == &s.rank_1 ? cut.write() : none()); },
            {&s.rank_1, &s.rank_2});
    failure const why = await_failure(*s.rank_0);
    CHECK(why.what == errc::unreachable);
    CHECK((why.reporter == 1 && why.peer == 2));
    CHECK(says(why, "the network between these two"));
    s.end();
}

TEST_CASE("rendezvous: where packets are lost, and not all, no way is called cut") {
    if (!can_be_deaf()) return;
    constexpr milliseconds bound{1'500};
    two_puppets s(bound);
    detail::wire::signs_of_life cut;
    cut.cut_off = 2;
    int const at_once = 1; // its messages wait for no acknowledgement
    ::setsockopt(s.rank_2.socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    s.rank_2.hears(false);
    s.speak(milliseconds(450), [&](puppet& one) { one.say(kind::heartbeat, 0, none()); },
            {&s.rank_1, &s.rank_2});
    s.rank_2.hears(true);
    s.speak(milliseconds(2'200),
            [&](puppet& one) { one.say(kind::heartbeat, 0, &one == &s.rank_1 ? cut.write() : none()); },
            {&s.rank_1, &s.rank_2});
    CHECK((s.rank_0->failed() == nullptr || s.rank_0->failed()->what != errc::unreachable));
    s.end();
}

TEST_CASE("rendezvous: a rank that pauses is not called cut off from another") {
    constexpr milliseconds bound{800};
    two_puppets s(bound);
    detail::wire::signs_of_life cut;
    cut.cut_off = 2;
    int number = 0;
    s.speak(2 * bound,
            [&](puppet& one) {
                // Rank 2 speaks at every sixth time: its pauses are longer than a fifth of its bound.
                if (&one == &s.rank_2 && ++number % 6 != 0) return;
                one.say(kind::heartbeat, 0, &one == &s.rank_1 ? cut.write() : none());
            },
            {&s.rank_1, &s.rank_2});
    CHECK(s.rank_0->failed() == nullptr);
    s.end();
}

TEST_CASE("rendezvous: a participant finds by itself that rank 0 is silent") {
    listener hub;
    puppet rank_0;
    std::jthread other([&] { rank_0.let_in(hub, 2, quick); });
    world rank_1 = join(1, 2, hub, quick);
    other.join();
    failure const& why = await_failure(rank_1);
    CHECK(why.what == errc::peer_lost);
    CHECK(why.peer == 0);
    ::close(std::exchange(rank_0.socket, -1));
}

TEST_CASE("rendezvous: rank 0's times hold for a participant that gives none") {
    listener hub;
    puppet rank_0;
    std::jthread other([&] { rank_0.let_in(hub, 2, {.peer_timeout = milliseconds(300)}); });
    world rank_1 = join(1, 2, hub, {});
    other.join();
    CHECK(rank_1.peer_timeout() == milliseconds(300));
    CHECK(rank_1.default_timeout() == milliseconds(30'000));
    failure const& why = await_failure(rank_1); // the puppet is silent
    CHECK(why.peer == 0);
    CHECK(says(why, "no sign of life for 300 ms"));
    ::close(std::exchange(rank_0.socket, -1));
}

TEST_CASE("rendezvous: times that no rank would choose are no welcome") {
    listener hub;
    puppet rank_0;
    std::jthread other([&] {
        rank_0.let_in(hub, 2, {.peer_timeout = milliseconds(0)});
        ::close(std::exchange(rank_0.socket, -1));
    });
    try {
        join(1, 2, hub, {}, milliseconds(500));
        FAIL("it joined");
    } catch (herring::error const& why) {
        CHECK(why.peer() == 0);
    }
    other.join();
}

TEST_CASE("rendezvous: what is no rank 0 before the welcome is tried again, and leaves nothing behind") {
    listener hub;
    std::jthread other([&] {
        auto const knocked = [&](puppet& as) { as.control_peer::let_in(hub.socket); };
        auto const closed = [](puppet& as) { CHECK_FALSE(as.hear()); };
        using rendezvous::message_kind;
        for (message_kind const kind : {message_kind::fail, message_kind::leave, message_kind::probe,
                                        message_kind::heartbeat, message_kind::collective_result}) {
            puppet stranger;
            knocked(stranger);
            auto const bad = failure::make(errc::internal, 0, 0, "x", "x");
            stranger.say(kind, 0,
                         kind == message_kind::fail ? rendezvous::write_failure(bad) : detail::byte_buffer());
            closed(stranger);
        }
        {
            puppet stranger; // announces what a rank 0 may have to say later: it is not waited for
            knocked(stranger);
            detail::byte_buffer bytes;
            std::array<std::byte, 16> const some{};
            rendezvous::append_message(bytes, message_kind::collective_result, 0, 1, some);
            REQUIRE(::send(stranger.socket, bytes.data(), rendezvous::head_bytes, MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(rendezvous::head_bytes));
            closed(stranger);
        }
        {
            puppet stranger; // ranks on nodes that nobody counts so
            knocked(stranger);
            rendezvous::welcome const odd{1, detail::resolve({}), {0, 5}, {0, 0}};
            stranger.say(message_kind::welcome, 0, odd.write());
            closed(stranger);
        }
        puppet rank_0;
        knocked(rank_0);
        rank_0.welcome(2, forgiving);
        rank_0.await(message_kind::leave);
        ::close(std::exchange(rank_0.socket, -1));
        ::close(std::exchange(hub.socket, -1));
    });
    {
        world rank_1 = join(1, 2, hub, forgiving);
        CHECK(rank_1.failed() == nullptr);
    }
    other.join();
}

TEST_CASE("rendezvous: a refusal that names a rank beyond the world is rank 0's") {
    listener hub;
    std::jthread other([&] {
        puppet rank_0;
        rank_0.accept(hub.socket);
        rank_0.challenged();
        rank_0.say(rendezvous::message_kind::refuse, 0,
                   rendezvous::write_failure(failure::make(errc::refused, 9, 1 << 26, "join", "no")));
        rank_0.hear();
    });
    try {
        join(1, 2, hub, {});
        FAIL("it joined");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::refused);
        CHECK(why.peer() == 0);
        CHECK(why.reported_by() == 1);
    }
    other.join();
    ::close(hub.socket);
}

TEST_CASE("rendezvous: who said hello and does not wait for the welcome loses its place to the rank") {
    listener hub;
    std::optional<world> rank_0;
    std::jthread first([&] { rank_0.emplace(join(0, 2, hub, forgiving)); });
    using rendezvous::message_kind;
    {
        // Refused, and at once welcome: what follows a refusal does not count.
        puppet stranger;
        stranger.connect(hub.at);
        stranger.knock();
        stranger.rank = 1;
        detail::byte_buffer bytes;
        for (std::uint32_t const size : {3u, 2u})
            bytes.append(
                stranger.bytes_of(message_kind::hello, 0, stranger.proven(control_peer::hello_of(1, size))));
        stranger.send(bytes);
        auto const reply = stranger.hear();
        REQUIRE(reply);
        CHECK(reply->front.type == message_kind::refuse);
        CHECK_FALSE(stranger.hear());
    }
    puppet rank_1;
    rank_1.join(1, 2, hub);
    first.join();
    CHECK(rank_0->failed() == nullptr);
    std::jthread leaves([&] { rank_0.reset(); });
    rank_1.await(message_kind::leave);
    ::close(std::exchange(rank_1.socket, -1));
    leaves.join();
}

TEST_CASE("rendezvous: who was refused, and stays, does not hear the goodbye, and rank 0 ends all the same") {
    listener hub;
    std::optional<world> rank_0;
    std::jthread first([&] { rank_0.emplace(join(0, 2, hub, forgiving)); });
    puppet rank_1, stranger;
    rank_1.join(1, 2, hub);
    first.join();
    using rendezvous::message_kind;
    stranger.connect(hub.at);
    REQUIRE(stranger.greet(control_peer::hello_of(1, 3)).front.type == message_kind::refuse);
    std::jthread leaves([&] { rank_0.reset(); });
    rank_1.await(message_kind::leave);
    ::close(std::exchange(rank_1.socket, -1));
    CHECK_FALSE(stranger.hear());
    stranger.close();
    leaves.join();
}

TEST_CASE("rendezvous: a goodbye, a failure or junk before the welcome ends no world") {
    listener hub;
    std::optional<world> rank_0;
    std::jthread first([&] { rank_0.emplace(join(0, 3, hub, forgiving)); });
    using rendezvous::message_kind;
    auto const bad = failure::make(errc::internal, 1, 0, "x", "x");
    for (message_kind const kind :
         {message_kind::leave, message_kind::fail, message_kind::contribute, message_kind{77}}) {
        puppet early;
        early.connect(hub.at);
        early.greet(control_peer::hello_of(1, 3));
        early.say(kind, 0,
                  kind == message_kind::fail ? rendezvous::write_failure(bad) : detail::byte_buffer());
        while (early.hear()) {
        }
    }
    puppet rank_1, rank_2;
    std::jthread second([&] { rank_1.join(1, 3, hub); });
    rank_2.join(2, 3, hub);
    second.join();
    first.join();
    CHECK(rank_0->failed() == nullptr);
    std::jthread leaves([&] { rank_0.reset(); });
    for (puppet* const each : {&rank_1, &rank_2}) {
        each->await(message_kind::leave);
        ::close(std::exchange(each->socket, -1));
    }
    leaves.join();
}

TEST_CASE("rendezvous: rank 0 that gives no verdict is the one") {
    for (int const accused : {0, 2}) {
        listener hub;
        puppet rank_0;
        std::jthread other([&] { rank_0.let_in(hub, 3, forgiving); });
        world rank_1 = join(1, 3, hub, forgiving);
        other.join();
        failure const& why = verdict(rank_1, accused);
        CHECK(why.what == errc::timeout);
        CHECK(why.peer == 0);
        CHECK(says(why, accused == 0 ? "rank 0 does not answer"
                                     : "rank 1 waits for rank 0, which does not answer"));
        ::close(std::exchange(rank_0.socket, -1));
    }
}

TEST_CASE("rendezvous: rank 0 that lives, and has no verdict yet, is not") {
    listener hub;
    puppet rank_0;
    std::jthread other([&] { rank_0.let_in(hub, 3, forgiving); });
    world rank_1 = join(1, 3, hub, forgiving);
    other.join();
    std::jthread lives([&] {
        failure heard;
        REQUIRE(rendezvous::read_failure(rank_0.await(rendezvous::message_kind::suspicion).body, 3, heard));
        for (int beats = 0; beats < 20; ++beats) {
            rank_0.await(rendezvous::message_kind::heartbeat);
            rank_0.say(rendezvous::message_kind::heartbeat, 0, {});
        }
        rank_0.say(rendezvous::message_kind::fail, 0,
                   rendezvous::write_failure(failure::make(errc::timeout, 1, 2, "wait", "it was")));
        rank_0.await(rendezvous::message_kind::leave);
        ::close(std::exchange(rank_0.socket, -1));
    });
    CHECK(verdict(rank_1, 2).peer == 2);
    { world const gone = std::move(rank_1); }
    lives.join();
}

TEST_CASE("rendezvous: who is lost when rank 0 has left is not the one: rank 0 left first") {
    auto const check = [](failure const& why) {
        CHECK(why.what == errc::peer_lost);
        CHECK(why.reporter == 1);
        CHECK(why.peer == 0);
        CHECK(says(why, "its world was destroyed, and then rank 2 was lost"));
    };
    {
        stage s(forgiving);
        std::jthread leaves([&] { s.rank_0.reset(); }); // until the others have closed
        s.rank_2.await(rendezvous::message_kind::leave);
        s.rank_2.close();
        leaves.join();
        check(verdict(*s.rank_1, 2, true));
    }
    for (bool const is_late : {false, true}) { // the goodbye comes in place of a decision
        listener hub;
        puppet rank_0;
        std::jthread other([&] { rank_0.let_in(hub, 3, forgiving); });
        world rank_1 = join(1, 3, hub, forgiving);
        other.join();
        std::jthread leaves([&] {
            rank_0.await(rendezvous::message_kind::suspicion);
            rank_0.say(rendezvous::message_kind::leave, 1, {});
            rank_0.close();
        });
        failure const& why = verdict(rank_1, 2, !is_late);
        if (!is_late) {
            check(why);
        } else { // rank 0 may have left in order
            CHECK(why.what == errc::timeout);
            CHECK(why.peer == 2);
        }
    }
}

TEST_CASE("rendezvous: blame goes where the accused says that it waits") {
    stage s(forgiving);
    std::jthread lives([&] { s.rank_2.live(detail::wait_report{detail::rank_state::waiting, 0}); });
    failure const& why = verdict(*s.rank_1, 2);
    CHECK(why.what == errc::timeout);
    CHECK(why.reporter == 1);
    CHECK(why.peer == 0);
    CHECK(says(why, "rank 2 waits for rank 0, which has not called"));
    CHECK(await_failure(*s.rank_0).peer == 0);
    lives.join();
}

TEST_CASE("rendezvous: who is alive, and does not say whom it waits for, is the one") {
    stage s(forgiving);
    std::jthread lives([&] { s.rank_2.live(); });
    failure const& why = verdict(*s.rank_0, 2);
    CHECK(why.peer == 2);
    CHECK(says(why, "rank 2 does not answer"));
    CHECK(await_failure(*s.rank_1).peer == 2);
    lives.join();
}

TEST_CASE("rendezvous: a rank answers when its caller has looked around, not with what it said before") {
    stage s(forgiving);
    std::jthread lives([&] { s.rank_2.live(detail::wait_report{detail::rank_state::idle, -1}); });
    detail::detector(*s.rank_1).waits_for(0, detail::detector(*s.rank_1).probe());
    std::jthread looks([&] {
        while (detail::detector(*s.rank_1).probe() == 0) std::this_thread::yield();
        detail::detector(*s.rank_1).waits_for(2, detail::detector(*s.rank_1).probe());
    });
    failure const& why = verdict(*s.rank_0, 1);
    CHECK(why.peer == 2);
    CHECK(says(why, "rank 1 waits for rank 2, which has not called"));
    looks.join();
    lives.join();
}

TEST_CASE("rendezvous: what is certain stands once the accused has had time to say what happened") {
    {
        stage s(forgiving);
        std::jthread lives([&] { s.rank_2.live(detail::wait_report{detail::rank_state::waiting, 0}); });
        failure const& why = verdict(*s.rank_1, 2, true);
        CHECK(why.what == errc::peer_lost);
        CHECK(why.peer == 2);
        CHECK(says(why, "its part has not come within the deadline; look at that rank"));
        lives.join();
    }
    {
        stage s(forgiving);
        std::jthread lives([&] {
            s.rank_2.await(rendezvous::message_kind::probe);
            s.rank_2.say(rendezvous::message_kind::fail, 0,
                         rendezvous::write_failure(failure::make(errc::device, 2, -1, "wait", "on purpose")));
            s.rank_2.live();
        });
        failure const& why = verdict(*s.rank_1, 2, true);
        CHECK(why.what == errc::device);
        lives.join();
    }
}

TEST_CASE("rendezvous: a collective whose deadline passes names whom the missing ranks wait for") {
    stage s(forgiving);
    std::jthread lives([&] { s.rank_2.live(detail::wait_report{detail::rank_state::idle, -1}); });
    std::jthread looks([&] { // rank 1 waits elsewhere for rank 2
        while (detail::detector(*s.rank_1).probe() == 0) std::this_thread::yield();
        detail::detector(*s.rank_1).waits_for(2, detail::detector(*s.rank_1).probe());
    });
    detail::detector(*s.rank_1).waits_for(2, detail::detector(*s.rank_1).probe());
    try {
        s.rank_0->barrier(milliseconds(50));
        FAIL("nobody else came");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::timeout);
        CHECK(why.peer() == 2);
    }
    looks.join();
    lives.join();
}

TEST_CASE(
    "rendezvous: answers and accusations that make no sense end the world in the name of who sent them") {
    for (int const what : {0, 1, 2}) {
        stage s(forgiving);
        if (what == 0) s.rank_2.say(rendezvous::message_kind::probe_reply, 0, rendezvous::write_answer({}));
        if (what == 1)
            s.rank_2.say(
                rendezvous::message_kind::suspicion, 0,
                rendezvous::write_failure(failure::make(errc::timeout, 2, 3, "wait", "there is no rank 3")));
        std::jthread lives([&] { s.rank_2.live(detail::wait_report{detail::rank_state::waiting, 7}); });
        if (what == 2) CHECK(verdict(*s.rank_0, 1).what != errc::ok);
        failure const& why = await_failure(*s.rank_1);
        if (what != 2) {
            CHECK(why.what == errc::protocol);
            CHECK(why.peer == 2);
        }
        lives.join();
    }
}

TEST_CASE("rendezvous: a question that the network loses is not held against who does not answer") {
    if (!can_be_deaf()) return;
    stage s(lossy);
    s.rank_2.hears(false);
    std::jthread lives([&] {
        while (detail::detector(*s.rank_0).probe() == 0) std::this_thread::yield();
        s.rank_2.hears_after(2 * lossy.reply_timeout);
        s.rank_2.live(detail::wait_report{detail::rank_state::waiting, 0});
    });
    failure const& why = verdict(*s.rank_1, 2);
    CHECK(why.peer == 0);
    CHECK(says(why, "rank 2 waits for rank 0, which has not called"));
    lives.join();
}

TEST_CASE("rendezvous: a rank that never hears the question is the one all the same") {
    if (!can_be_deaf()) return;
    stage s(quick); // hardly more than its peer_timeout
    s.rank_2.hears(false);
    failure const& why = verdict(*s.rank_1, 2);
    CHECK(why.peer == 2);
    CHECK(await_failure(*s.rank_0).peer == 2);
}

TEST_CASE("rendezvous: rank 0, which does not hear a suspicion that the network loses, is not the one") {
    if (!can_be_deaf()) return;
    listener hub;
    puppet rank_0;
    std::jthread other([&] { rank_0.let_in(hub, 3, lossy); });
    world rank_1 = join(1, 3, hub, lossy);
    other.join();
    rank_0.hears(false);
    std::jthread lives([&] {
        rank_0.hears_after(3 * lossy.reply_timeout);
        rank_0.await(rendezvous::message_kind::suspicion);
        rank_0.say(rendezvous::message_kind::fail, 0,
                   rendezvous::write_failure(failure::make(errc::timeout, 1, 2, "wait", "it was")));
        rank_0.await(rendezvous::message_kind::leave);
        ::close(std::exchange(rank_0.socket, -1));
    });
    CHECK(verdict(rank_1, 2).peer == 2);
    { world const gone = std::move(rank_1); }
    lives.join();
}

TEST_CASE("rendezvous: a verdict that is due is awaited for longer where the network may hold it up") {
    if (!can_be_deaf()) return;
    for (bool const loses : {false, true}) {
        listener hub;
        puppet rank_0;
        std::jthread other([&] { rank_0.let_in(hub, 3, lossy); });
        world rank_1 = join(1, 3, hub, lossy);
        other.join();
        if (loses) rank_0.hears(false);
        detail::suspicion_report of;
        of.why = failure::make(errc::timeout, 1, 2, "wait", "its part has not come");
        detail::detector(rank_1).report_suspicion(of);
        CHECK_FALSE(of.held_up);
        of.waited = lossy.verdict_timeout + milliseconds(1);
        auto const until = herring::clock::now() + plenty;
        do detail::detector(rank_1).report_suspicion(of);
        while (of.held_up != loses && rank_1.failed() == nullptr && herring::clock::now() < until);
        CHECK((of.held_up || rank_1.failed() != nullptr) == loses);
        of.waited = lossy.verdict_timeout + plenty;
        detail::detector(rank_1).report_suspicion(of);
        CHECK_FALSE(of.held_up);
        ::close(std::exchange(rank_0.socket, -1));
    }
}

TEST_CASE("rendezvous: rank 0 stays until all have heard of a failure, also what the network lost at first") {
    if (!can_be_deaf()) return;
    stage s(lossy);
    s.rank_2.hears(false);
    std::jthread others([&] {
        await_failure(*s.rank_1);
        s.rank_1.reset();
    });
    s.rank_0->fail(failure::make(errc::device, 0, 1, "wait", "on purpose"));
    std::jthread leaves([&] { s.rank_0.reset(); });
    std::this_thread::sleep_for(milliseconds(900)); // longer than where all is well
    s.rank_2.say(rendezvous::message_kind::heartbeat, 0, {});
    s.rank_2.hears_after(milliseconds(100));
    failure told;
    REQUIRE(rendezvous::read_failure(s.rank_2.await(rendezvous::message_kind::fail).body, 3, told));
    CHECK(told.peer == 1);
    s.rank_2.await(rendezvous::message_kind::leave);
    ::close(std::exchange(s.rank_2.socket, -1));
    leaves.join();
    others.join();
}
