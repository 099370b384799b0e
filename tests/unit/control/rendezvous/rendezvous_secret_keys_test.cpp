// herring: tests of control/rendezvous: joining with a secret, and what those hear who lack it, replay it or change it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/rendezvous.hpp"
#include "herring/machine/address.hpp"
#include "herring/world.hpp"

#include "control_peer.hpp"
#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using herring::errc;
using herring::failure;
using herring::world;
using std::chrono::milliseconds;
namespace detail = herring::detail;
namespace rendezvous = herring::detail::rendezvous;
using kind = control_peer::kind;

namespace {

// Longer than anything here takes: only a defect waits for it.
constexpr milliseconds plenty{30'000};

std::string digits(char of) { return std::string(64, of); }
std::string const ours = digits('a'), theirs = digits('b');
detail::secret const their_secret(theirs);

using listener = control_listener;

std::optional<detail::secrets> given(std::string const& secret, std::string const& also = {}) {
    std::optional<detail::secrets> made;
    if (secret.empty()) return made;
    made.emplace(detail::secrets{detail::secret(secret), {}, {}});
    if (!also.empty()) made->also.emplace(also);
    return made;
}

/// A real rank of two. Rank 0 takes the listener over.
world join(int rank, listener const& hub, std::optional<detail::secrets> secret, milliseconds most = plenty) {
    rendezvous::settings made;
    made.rank = rank;
    made.size = 2;
    made.addresses = detail::fixed_array<detail::endpoint>(1);
    made.addresses[0] = hub.at;
    made.address_text = hub.at.text();
    made.node = made.boot = "here";
    made.timeout = most;
    made.deadline = herring::clock::now() + most;
    made.secret = std::move(secret);
    if (rank == 0) made.listeners.emplace_back(hub.socket);
    return world(rendezvous::join_world(std::move(made)));
}

/// The error that joining ends in.
failure not_joined(int rank, listener const& hub, std::optional<detail::secrets> secret,
                   milliseconds most = plenty) {
    try {
        world const w = join(rank, hub, std::move(secret), most);
    } catch (herring::error const& why) {
        return why.why();
    }
    return {};
}

bool says(failure const& why, char const* text) {
    bool const found = std::strstr(why.text, text) != nullptr;
    if (!found) MESSAGE("'" << why.text << "' lacks '" << text << "'");
    return found;
}

failure const& await_failure(world& w) {
    auto const until = herring::clock::now() + plenty;
    while (w.failed() == nullptr && herring::clock::now() < until) std::this_thread::yield();
    REQUIRE(w.failed() != nullptr);
    return *w.failed();
}

double seconds_since(herring::time_point from) {
    return std::chrono::duration<double>(herring::clock::now() - from).count();
}

/// A real rank 0 of two, in a thread, whose rank 1 is the test's.
struct real_rank_0 {
    listener hub{};
    std::optional<world> here{};
    std::jthread joins; // where a test fails, it ends at the deadline of its join

    explicit real_rank_0(std::optional<detail::secrets> secret)
        : joins([this, s = std::move(secret)]() mutable { here.emplace(join(0, hub, std::move(s))); }) {}
    /// Once rank 1 has joined.
    world& joined() {
        if (joins.joinable()) joins.join();
        return *here;
    }
    /// Rank 1 joins at last, and both leave.
    void end(control_peer& rank_1) {
        joined();
        std::jthread leaves([&] { here.reset(); });
        rank_1.await(kind::leave);
        rank_1.close();
        leaves.join();
    }
};

failure refusal_of(control_peer::heard const& reply, bool has_proof) {
    CHECK(reply.front.type == kind::refuse);
    std::span<std::byte const> words(reply.body);
    if (has_proof) words = words.first(words.size() - detail::wire::proof_bytes);
    failure why;
    CHECK(detail::wire::read_failure(words, 1000, why));
    return why;
}

} // namespace

TEST_CASE("secret_keys: ranks that have one secret join, and derive the same keys") {
    listener hub;
    std::optional<world> ends[2];
    std::jthread first([&] { ends[0].emplace(join(0, hub, given(ours))); });
    ends[1].emplace(join(1, hub, given(ours)));
    first.join();
    std::array<std::byte, 48> keys[2]{};
    for (int r : {0, 1}) {
        CHECK(ends[r]->has_secret());
        ends[r]->derive_key(keys[r], "a label", 1 - r);
    }
    CHECK(keys[0] == keys[1]);
    CHECK(keys[0] != std::array<std::byte, 48>{});
    std::jthread other([&] { CHECK(ends[0]->all_gather(std::as_bytes(std::span("zero"))).size() == 2); });
    CHECK(ends[1]->all_gather(std::as_bytes(std::span("one"))).size() == 2);
    other.join();
    std::jthread leaves([&] { ends[0].reset(); });
    ends[1].reset();
    leaves.join();
}

TEST_CASE("secret_keys: without a secret on either side ranks join as before, and have a key that is none") {
    real_rank_0 rank_0({});
    control_peer rank_1;
    rank_1.join(1, 2, rank_0.hub.at);
    CHECK_FALSE(rank_0.joined().has_secret());
    CHECK_FALSE(rank_1.keys.has_value());
    rank_0.end(rank_1);
}

TEST_CASE("secret_keys: a recorded hello proves nothing, in this job or the next one") {
    detail::byte_buffer knock, hello;
    auto const replayed = [&](listener const& hub) {
        control_peer thief;
        thief.rank = 1;
        thief.connect(hub.at);
        thief.send(knock);
        (void)thief.await(kind::challenge);
        thief.send(hello);
        auto const reply = thief.hear();
        REQUIRE(reply);
        CHECK(says(refusal_of(*reply, false), "its secret is not rank 0's"));
        CHECK_FALSE(thief.hear());
    };
    {
        real_rank_0 rank_0(given(ours));
        control_peer rank_1;
        rank_1.connect(rank_0.hub.at);
        rank_1.rank = 1;
        knock = rank_1.bytes_of(kind::knock, 0, {});
        rank_1.knock();
        hello = rank_1.bytes_of(kind::hello, 0, rank_1.proven(control_peer::hello_of(1, 2), &our_secret()));
        replayed(rank_0.hub); // of the same job, even before it is used
        rank_1.send(hello);
        auto const reply = rank_1.hear();
        REQUIRE(reply);
        rank_1.admitted(*reply);
        rank_1.await(kind::welcome);
        replayed(rank_0.hub);
        rank_0.end(rank_1);
    }
    real_rank_0 next(given(ours));
    replayed(next.hub);
    control_peer rank_1;
    rank_1.join(1, 2, next.hub.at, &our_secret());
    next.end(rank_1);
}

TEST_CASE("secret_keys: who proves to be one rank cannot say that it is another") {
    real_rank_0 rank_0(given(ours));
    control_peer forger;
    forger.connect(rank_0.hub.at);
    forger.knock();
    forger.rank = 1;
    auto const other = forger.proven(control_peer::hello_of(2, 2), &our_secret()); // recorded of a rank 2
    std::vector<std::byte> forged(other.begin(), other.end());
    forged[detail::wire::nonce_bytes + 1 + 4] = std::byte{1};
    forger.say(kind::hello, 0, forged);
    auto const reply = forger.hear();
    REQUIRE(reply);
    CHECK(says(refusal_of(*reply, false), "its secret is not rank 0's"));
    forger.close();
    control_peer rank_1;
    rank_1.join(1, 2, rank_0.hub.at, &our_secret());
    rank_0.end(rank_1);
}

TEST_CASE("secret_keys: who only asks gets no proof, and who has the wrong secret, or none, is told so") {
    real_rank_0 rank_0(given(ours));
    for (detail::secret const* const by : {&their_secret, static_cast<detail::secret const*>(nullptr)}) {
        control_peer stranger;
        stranger.connect(rank_0.hub.at);
        auto const reply = stranger.greet(control_peer::hello_of(1, 2), by);
        CHECK(says(refusal_of(reply, false),
                   by != nullptr ? "its secret is not rank 0's" : "rank 0 has a secret, it has none"));
    }
    {
        control_peer silent; // who does not knock hears nothing; who says hello without a challenge neither
        silent.connect(rank_0.hub.at);
        silent.say(kind::hello, 0, control_peer::hello_of(1, 2).write());
        CHECK_FALSE(silent.hear());
    }
    {
        control_peer again; // a second knock gets no second challenge
        again.connect(rank_0.hub.at);
        again.knock();
        again.say(kind::knock);
        CHECK_FALSE(again.hear());
    }
    control_peer rank_1;
    rank_1.join(1, 2, rank_0.hub.at, &our_secret());
    rank_0.end(rank_1);
}

TEST_CASE("secret_keys: a refusal to who has proved itself is proved, and final at once") {
    {
        real_rank_0 rank_0(given(ours));
        control_peer odd;
        odd.connect(rank_0.hub.at);
        auto const reply = odd.greet(control_peer::hello_of(1, 3), &our_secret());
        CHECK(says(refusal_of(reply, true), "the world has 3 ranks, rank 0 says 2"));
        std::span<std::byte const> words;
        detail::wire::proof shown{};
        REQUIRE(detail::wire::split_proof(reply.body, words, shown));
        CHECK(shown == odd.seen->proof_of_refusal(detail::wire::refusal_front(0), words));
        odd.close();
        control_peer rank_1;
        rank_1.join(1, 2, rank_0.hub.at, &our_secret());
        rank_0.end(rank_1);
    }
    listener hub;
    std::jthread other([&] {
        control_peer rank_0;
        rank_0.accept(hub.socket);
        auto const hello = rank_0.challenged(true);
        std::span<std::byte const> const words(hello.data(), hello.size() - detail::wire::proof_bytes);
        detail::wire::challenge asked;
        CHECK(asked.read(rank_0.challenge));
        detail::wire::handshake const seen(detail::wire::rank_names, our_secret().key(asked.salt),
                                           rank_0.challenge, words);
        auto body = detail::wire::write_failure(failure::make(errc::refused, 1, 0, "join", "not you"));
        body.append(seen.proof_of_refusal(detail::wire::refusal_front(0), body));
        rank_0.say(kind::refuse, 0, body);
        hub.close();
    });
    auto const from = herring::clock::now();
    failure const why = not_joined(1, hub, given(ours));
    CHECK(why.what == errc::refused);
    CHECK(std::string(why.text) == "not you");
    CHECK(seconds_since(from) < 1.5);
    other.join();
}

TEST_CASE("secret_keys: a refusal by who has proved nothing ends nobody, unless it is all that is said for "
          "two seconds") {
    auto const refuse = [](control_peer& as, char const* words) {
        as.await(kind::knock);
        as.say(kind::refuse, 0,
               detail::wire::write_failure(failure::make(errc::mismatch, 1, 0, "join", words)));
    };
    {
        listener hub;
        std::jthread other([&] {
            for (int i = 0; i < 5; ++i) {
                control_peer liar;
                liar.accept(hub.socket);
                refuse(liar, i % 2 == 0 ? "go away" : "the world is full");
            }
            control_peer rank_0;
            rank_0.let_in(hub.socket, &our_secret());
            std::vector<int> const zeroes(2);
            rank_0.say(kind::welcome, 0,
                       detail::wire::welcome{1, detail::resolve({}), zeroes, zeroes}.write());
            rank_0.await(kind::leave);
            hub.close();
        });
        {
            world w = join(1, hub, given(ours));
            CHECK(w.has_secret());
        }
        other.join();
    }
    listener hub;
    std::atomic<bool> done{false};
    std::atomic<int> times{0};
    std::jthread other([&] {
        while (!done) {
            pollfd asks{hub.socket, POLLIN, 0};
            if (::poll(&asks, 1, 20) != 1) continue;
            control_peer liar;
            liar.accept(hub.socket);
            refuse(liar, "go away");
            ++times;
        }
        hub.close();
    });
    auto const from = herring::clock::now();
    failure const why = not_joined(1, hub, given(ours));
    CHECK(why.what == errc::mismatch);
    CHECK(says(why, "says, unverified: go away"));
    CHECK(says(why, hub.at.text().c_str()));
    CHECK(seconds_since(from) >= 2.0);
    CHECK(seconds_since(from) < 10.0);
    CHECK(times >= 3);
    done = true;
    other.join();
}

TEST_CASE("secret_keys: a false rank 0 gets no rank, whatever it answers") {
    listener hub;
    std::jthread other([&] {
        for (int how = 0; how < 5; ++how) {
            control_peer liar;
            liar.accept(hub.socket);
            auto const hello = liar.challenged(how != 1); // 1: says that nobody has a secret
            // Without that, the rank shows no proof to try guesses on.
            std::span<std::byte const> words;
            detail::wire::proof shown{};
            CHECK(detail::wire::split_proof(hello, words, shown));
            CHECK((shown == detail::wire::proof{}) == (how == 1));
            detail::wire::admit told;
            if (how == 2) liar.admit(hello, &their_secret);
            if (how == 3) told.proof = shown; // the rank's own, reflected
            std::vector<int> const zeroes(2);
            auto const welcome = detail::wire::welcome{1, detail::resolve({}), zeroes, zeroes}.write();
            if (how == 4)
                liar.say(kind::welcome, 0, welcome);
            else if (how != 2)
                liar.say(kind::admit, 0, told.write());
            CHECK_FALSE(liar.hear());
        }
        control_peer rank_0;
        rank_0.let_in(hub.socket, &our_secret());
        std::vector<int> const zeroes(2);
        rank_0.say(kind::welcome, 0, detail::wire::welcome{7, detail::resolve({}), zeroes, zeroes}.write());
        rank_0.await(kind::leave);
        hub.close();
    });
    {
        world w = join(1, hub, given(ours));
        CHECK(w.job() == 7);
    }
    other.join();
}

TEST_CASE("secret_keys: a rank that found no rank 0 with its secret says so at its deadline") {
    listener hub;
    std::atomic<bool> done{false};
    std::jthread other([&] {
        while (!done) {
            pollfd asks{hub.socket, POLLIN, 0};
            if (::poll(&asks, 1, 20) != 1) continue;
            control_peer liar;
            liar.accept(hub.socket);
            liar.admit(liar.challenged(true), &their_secret);
            while (liar.hear()) {
            }
        }
        hub.close();
    });
    failure const why = not_joined(1, hub, given(ours), milliseconds(300));
    CHECK(why.what == errc::timeout);
    CHECK(why.peer == 0);
    CHECK(says(why, "has not proved that it has this rank's secret"));
    done = true;
    other.join();
}

TEST_CASE("secret_keys: real ranks whose secrets differ, or of which one has none, end in words for both") {
    struct {
        std::string zero, one;
        char const* words;
    } const pairs[] = {{ours, theirs, "its secret is not rank 0's"},
                       {ours, "", "rank 0 has a secret, it has none"},
                       {"", ours, "it has a secret, rank 0 has none"}};
    for (auto const& pair : pairs) {
        listener hub;
        failure told[2];
        std::jthread first([&] { told[0] = not_joined(0, hub, given(pair.zero), milliseconds(2'500)); });
        told[1] = not_joined(1, hub, given(pair.one), milliseconds(20'000));
        first.join();
        CHECK(told[1].what == errc::mismatch);
        CHECK(says(told[1], pair.words));
        CHECK((std::strstr(told[1].text, "unverified") != nullptr) == !pair.one.empty());
        CHECK(told[0].what == errc::timeout);
        CHECK(says(told[0], pair.words));
    }
}

TEST_CASE("secret_keys: while secrets are changed, the second is believed too") {
    for (bool const also_is_shown : {false, true}) {
        real_rank_0 rank_0(given(ours, theirs));
        control_peer rank_1;
        rank_1.join(1, 2, rank_0.hub.at, also_is_shown ? &their_secret : &our_secret());
        CHECK(rank_1.keys.has_value());
        rank_0.end(rank_1);
    }
    listener hub;
    std::optional<world> rank_0;
    std::jthread first([&] { rank_0.emplace(join(0, hub, given(ours, theirs))); });
    world rank_1 = join(1, hub, given(theirs, ours));
    first.join();
    CHECK(rank_1.has_secret());
    std::jthread leaves([&] { rank_0.reset(); });
    { world const gone = std::move(rank_1); }
    leaves.join();
}

TEST_CASE("secret_keys: after the admission a message that was changed, repeated or sent back ends the world "
          "by name") {
    for (char const* const how : {"changed", "repeated", "sent back", "without a tag"}) {
        CAPTURE(how);
        real_rank_0 rank_0(given(ours));
        control_peer rank_1;
        rank_1.join(1, 2, rank_0.hub.at, &our_secret());
        world& zero = rank_0.joined();
        auto const beat = rank_1.bytes_of(kind::heartbeat, 0, {});
        if (std::string(how) == "changed") {
            // A goodbye in its place, with the right checksums and the tag of the heartbeat.
            detail::byte_buffer bytes;
            detail::wire::append_message(bytes, kind::leave, 1, 0, {});
            bytes.append(std::span<std::byte const>(beat).last(detail::wire::tag_bytes));
            rank_1.send(bytes);
        } else if (std::string(how) == "repeated") {
            rank_1.send(beat);
            rank_1.send(beat);
        } else if (std::string(how) == "sent back") {
            auto const heard = rank_1.await(kind::heartbeat);
            std::vector<std::byte> bytes(heard.raw);
            rank_1.send(bytes);
        } else {
            rank_1.send(std::span<std::byte const>(beat).first(detail::wire::head_bytes));
            rank_1.send(std::span<std::byte const>(beat).first(detail::wire::tag_bytes));
        }
        failure const& why = await_failure(zero);
        CHECK(why.what == errc::protocol);
        CHECK(why.peer == 1);
        CHECK(says(why, "whose tag is not of the key of this connection"));
        rank_1.close();
    }
}
