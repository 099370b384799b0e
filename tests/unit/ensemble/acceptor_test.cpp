// herring: tests of ensemble/acceptor.hpp: who is admitted, who is not and hears why, who takes over, who is lost.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/acceptor.hpp"

#include "doctest/doctest.h"
#include "ensemble_control.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace ensemble_acceptor_test {

using namespace ensemble_control;
using ensembles::acceptor;
using herring::admission_refusal;
using std::chrono::milliseconds;

struct frontend : listening_frontend {
    using listening_frontend::listening_frontend;

    std::uint64_t refusals(admission_refusal reason) {
        return at->counters().refused[static_cast<std::size_t>(reason)];
    }
    /// Counters follow what a peer sees, by a moment.
    template <class Holds> bool comes_true(Holds&& holds) {
        auto const until = herring::clock::now() + plenty;
        while (herring::clock::now() < until) {
            if (holds(at->counters())) return true;
            ::poll(nullptr, 0, 1);
        }
        return false;
    }
};

bool says(std::string const& text, char const* piece) {
    bool const found = text.find(piece) != std::string::npos;
    if (!found) MESSAGE("'" << text << "' lacks '" << piece << "'");
    return found;
}

TEST_CASE(
    "acceptor: a member that proves itself is admitted with its lane, and what follows on the lane is the "
    "lane's") {
    frontend f;
    member_peer peer(f.address(), 7, "b");
    peer.join();
    CHECK(peer.told.facts.peer == 1);
    CHECK(peer.told.facts.credits == 4);
    CHECK(peer.told.facts.in_flight == 64);
    CHECK(peer.told.facts.request_bytes == 64);
    CHECK(peer.told.facts.row_bytes == 32);
    CHECK(peer.told.local.empty());
    detail::descriptor const lane = peer.lane(f.address());
    call const got = f.sink.heard.next("admitted");
    CHECK(got.index == 1);
    CHECK(got.incarnation == 7);
    CHECK(got.credits == 4);
    REQUIRE(got.ends.socket >= 0);
    CHECK_FALSE(got.ends.is_shared());
    CHECK(::send(lane.get(), "row", 3, 0) == 3);
    char word[4] = {};
    pollfd ready{got.ends.socket, POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    CHECK(::recv(got.ends.socket, word, sizeof word, 0) == 3);
    CHECK(std::string(word) == "row");
    CHECK(await(peer.link, message::heartbeat).kind == message::heartbeat);
    peer.link.close();
    CHECK(says(f.sink.heard.next("lost").text, "member 'b': its control connection closed"));
    auto const counted = f.at->counters();
    CHECK(counted.admitted == 1);
    CHECK(counted.lost == 1);
    CHECK(counted.unidentified == 0);
}

TEST_CASE("acceptor: without a secret the lane's key is in the admission, and still a lane needs it") {
    ensembles::acceptor_options options = acceptor_options();
    options.secret.reset();
    frontend f(options);
    member_peer peer(f.address());
    peer.said.has_secret = false;
    peer.join("");
    member_peer stranger(f.address());
    stranger.told = peer.told; // knows the ticket, not the key
    ensembles::control_link made(connected_to(f.address()), false, false);
    stranger.greet(made, herring::lane::tcp);
    made.send(message::lane_proof, wire::proof{});
    CHECK(closes(made.socket()));
    detail::descriptor const lane = peer.lane(f.address());
    CHECK(f.sink.heard.next("admitted").index == 0);
    CHECK(f.comes_true([](auto const& c) { return c.unidentified == 1; }));
}

TEST_CASE("acceptor: every difference of shapes is refused with a proof, in words that have both values") {
    frontend f;
    auto const refused = [&](admission_refusal reason, char const* words, auto&& change) {
        member_peer peer(f.address());
        change(peer.said);
        peer.hello(peer.apply());
        auto const why = peer.refused();
        CHECK(peer.proven_refusal);
        CHECK(why.reason == reason);
        CHECK(says(why.text, words));
        call const told = f.sink.heard.next("refused");
        CHECK(told.reason == reason);
        CHECK(says(told.text, words));
        CHECK(f.refusals(reason) == 1);
    };
    refused(admission_refusal::ensemble, "'vision' at the member, 'speech' at the frontend",
            [](ensembles::hello& h) { h.shape.ensemble = "vision"; });
    refused(admission_refusal::type, "'double' at the member, 'float' at the frontend",
            [](ensembles::hello& h) { h.shape.type = "double"; });
    refused(admission_refusal::policies, "'combine::vote' at the member, 'combine::mean'",
            [](ensembles::hello& h) { h.shape.policies = "combine::vote"; });
    refused(admission_refusal::elements, "'9' at the member, '8'",
            [](ensembles::hello& h) { h.shape.elements = 9; });
    refused(admission_refusal::row_bytes, "'16' at the member, '32'",
            [](ensembles::hello& h) { h.shape.row_bytes = 16; });
    refused(admission_refusal::request_bytes, "'65' at the member, '64'",
            [](ensembles::hello& h) { h.shape.request_bytes = 65; });
    refused(admission_refusal::model_version, "'v2' at the member, 'v1'",
            [](ensembles::hello& h) { h.shape.model_version = "v2"; });
    refused(admission_refusal::member, "no 'c'; it has 'a', 'b'", [](ensembles::hello& h) { h.name = "c"; });
    refused(admission_refusal::replica, "its replica number is 1",
            [](ensembles::hello& h) { h.replica = 1; });
    refused(admission_refusal::lane, "no memory to share",
            [](ensembles::hello& h) { h.lanes = herring::lane::shared; });
}

TEST_CASE("acceptor: a flood of members that are refused is counted, and told of a few times") {
    frontend f;
    constexpr std::uint64_t all = 30;
    auto const begun = herring::clock::now();
    for (std::uint64_t i = 0; i < all; ++i) {
        member_peer peer(f.address());
        peer.said.shape.elements = 9;
        peer.hello(peer.apply());
        CHECK(peer.refused().reason == admission_refusal::elements);
    }
    CHECK(f.refusals(admission_refusal::elements) == all);
    auto const seconds =
        std::chrono::duration_cast<std::chrono::seconds>(herring::clock::now() - begun).count();
    member_peer last(f.address()); // of another reason, so told at once, after those
    last.said.name = "c";
    last.hello(last.apply());
    int told = 0;
    while (f.sink.heard.next("refused").reason == admission_refusal::elements) ++told;
    CHECK(told >= 8);
    CHECK(told <= 8 + seconds + 1);
}

TEST_CASE("acceptor: a wrong secret, and one that only one end has, are refused without a proof") {
    frontend f;
    {
        member_peer peer(f.address());
        peer.hello(peer.apply(), std::string(64, 'b'));
        CHECK(says(peer.refused().text, "the member's secret is not the frontend's"));
        CHECK_FALSE(peer.proven_refusal);
        CHECK(f.sink.heard.next("refused").reason == admission_refusal::secret);
    }
    {
        member_peer peer(f.address());
        peer.said.has_secret = false;
        peer.hello(peer.apply(), "");
        CHECK(says(peer.refused().text, "the frontend has a secret, the member has none"));
    }
    {
        member_peer peer(f.address());
        peer.hello(peer.apply(), ""); // says that it has one
        CHECK(peer.refused().reason == admission_refusal::secret);
    }
    CHECK(f.refusals(admission_refusal::secret) == 3);
    ensembles::acceptor_options options = acceptor_options();
    options.secret.reset();
    frontend open(options);
    member_peer peer(open.address());
    CHECK_FALSE(peer.apply().has_secret);
    peer.hello({}, "");
    CHECK(says(peer.refused().text, "the member has a secret, the frontend has none"));
}

TEST_CASE("acceptor: another version of the protocol is refused by name") {
    frontend f;
    member_peer peer(f.address());
    detail::byte_buffer knock;
    ensembles::append_message(knock, message::apply, {}, 9);
    REQUIRE(::send(peer.link.socket(), knock.data(), knock.size(), 0) == static_cast<ssize_t>(knock.size()));
    auto const why = peer.refused();
    CHECK(why.reason == admission_refusal::other_version);
    CHECK(says(why.text, "the member speaks version 9 of the protocol of ensembles, the frontend version 2"));
    CHECK(f.refusals(admission_refusal::other_version) == 1);
}

TEST_CASE("acceptor: a recorded hello, and a recorded lane, prove nothing") {
    frontend f;
    member_peer peer(f.address(), 5);
    peer.join();
    detail::descriptor const lane = peer.lane(f.address());
    f.sink.heard.next("admitted");
    {
        member_peer thief(f.address(), 5);
        thief.apply();
        detail::byte_buffer body = peer.said.write();
        body.append(peer.seen->proof_of_dialler());
        thief.link.send(message::hello, body);
        CHECK(thief.refused().reason == admission_refusal::secret);
    }
    {
        ensembles::control_link made(connected_to(f.address()), false, false);
        made.send(message::lane_hello, peer.lane_words); // its admission has its lane
        CHECK(closes(made.socket()));
    }
    member_peer second(f.address(), 6);
    second.join();
    {
        ensembles::control_link made(connected_to(f.address()), false, false);
        second.greet(made, herring::lane::tcp);
        wire::handshake const recorded(ensembles::lane_names, second.lane_key, second.lane_words,
                                       peer.lane_challenge);
        made.send(message::lane_proof, recorded.proof_of_dialler()); // to another challenge
        CHECK(closes(made.socket()));
    }
    detail::descriptor const other = second.lane(f.address());
    f.sink.heard.await("admitted");
}

TEST_CASE("acceptor: while secrets are changed, both are believed") {
    ensembles::acceptor_options options = acceptor_options();
    options.secret.reset();
    std::string const file = detail::text({"/tmp/herring-acceptor-test-", detail::random_bits()});
    {
        detail::descriptor const made(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        std::string const both = std::string(64, 'b') + "\n" + std::string(64, 'a') + "\n";
        REQUIRE(::write(made.get(), both.data(), both.size()) == static_cast<ssize_t>(both.size()));
    }
    options.secret_file = file;
    frontend f(options);
    ::unlink(file.c_str());
    member_peer old_one(f.address(), 1, "a"), new_one(f.address(), 1, "b");
    old_one.join(std::string(64, 'a'));
    new_one.join(std::string(64, 'b'));
    CHECK(new_one.told.facts.peer == 1);
}

TEST_CASE("acceptor: a newer process takes over; the older is told so, and stays out") {
    frontend f;
    member_peer older(f.address(), 10);
    older.join();
    detail::descriptor const first = older.lane(f.address());
    CHECK(f.sink.heard.next("admitted").incarnation == 10);
    member_peer newer(f.address(), 11);
    newer.join();
    call const gone = f.sink.heard.next("lost");
    CHECK(gone.incarnation == 10);
    CHECK(says(gone.text, "a newer process took its place"));
    CHECK(f.sink.heard.next("refused").reason == admission_refusal::replaced);
    detail::descriptor const second = newer.lane(f.address());
    CHECK(f.sink.heard.next("admitted").incarnation == 11);
    auto const told = older.refused(); // with a right tag, or there would be none
    CHECK(told.reason == admission_refusal::replaced);
    CHECK(says(told.text, "incarnation 11"));
    member_peer again(f.address(), 10);
    again.hello(again.apply());
    CHECK(again.refused().reason == admission_refusal::replaced);
    CHECK(again.proven_refusal);
    CHECK(f.at->counters().replaced == 1);
}

TEST_CASE("acceptor: the same process on a new connection is lost and admitted again") {
    frontend f;
    member_peer once(f.address(), 10);
    once.join();
    detail::descriptor const first = once.lane(f.address());
    f.sink.heard.next("admitted");
    member_peer twice(f.address(), 10);
    twice.join();
    CHECK(says(f.sink.heard.next("lost").text, "it came again"));
    detail::descriptor const second = twice.lane(f.address());
    f.sink.heard.next("admitted");
    CHECK(closes(once.link.socket()));
}

TEST_CASE("acceptor: one that leaves drains first, and is let go once it owes nothing") {
    frontend f;
    member_peer peer(f.address(), 3);
    peer.join();
    detail::descriptor const lane = peer.lane(f.address());
    f.sink.heard.next("admitted");
    peer.link.send(message::leave, {});
    CHECK(f.sink.heard.next("draining").incarnation == 3);
    f.at->drained(0, 2); // another incarnation's
    f.at->drained(1, 3);
    CHECK(f.sink.heard.empty());
    f.at->drained(0, 3);
    CHECK(says(f.sink.heard.next("lost").text, "it left"));
    await(peer.link, message::goodbye);
    CHECK(closes(peer.link.socket()));
}

TEST_CASE("acceptor: a lane that is broken is dropped, and its member told why") {
    frontend f;
    member_peer peer(f.address(), 3);
    peer.join();
    detail::descriptor const lane = peer.lane(f.address());
    f.sink.heard.next("admitted");
    f.at->drop(0, 3, "a frame with a wrong head");
    CHECK(says(f.sink.heard.next("lost").text, "a frame with a wrong head"));
    auto const told = await(peer.link, message::goodbye);
    CHECK(std::string(reinterpret_cast<char const*>(told.body.data()), told.body.size()) ==
          "a frame with a wrong head");
}

TEST_CASE("acceptor: one that goes silent is lost after peer_timeout") {
    ensembles::acceptor_options options = acceptor_options();
    options.heartbeat = milliseconds(20);
    options.peer_timeout = milliseconds(300);
    frontend f(options);
    member_peer peer(f.address(), 3);
    peer.join();
    detail::descriptor const lane = peer.lane(f.address());
    f.sink.heard.next("admitted");
    CHECK(says(f.sink.heard.next("lost").text, "no sign of life for 300 ms"));
    CHECK(closes(peer.link.socket()));
}

TEST_CASE("acceptor: messages that are forged or out of turn end the connection") {
    frontend f;
    {
        member_peer peer(f.address(), 3);
        peer.join();
        detail::descriptor const lane = peer.lane(f.address());
        f.sink.heard.next("admitted");
        detail::byte_buffer bare;
        ensembles::append_message(bare, message::leave, {});
        bare.append(wire::message_tag{});
        REQUIRE(::send(peer.link.socket(), bare.data(), bare.size(), 0) == static_cast<ssize_t>(bare.size()));
        CHECK(says(f.sink.heard.next("lost").text, "tag is not of the key"));
    }
    {
        member_peer peer(f.address(), 3);
        peer.join();
        detail::descriptor const lane = peer.lane(f.address());
        f.sink.heard.next("admitted");
        peer.link.send(message::apply, {});
        CHECK(says(f.sink.heard.next("lost").text, "no member sends then"));
    }
}

TEST_CASE("acceptor: junk and messages of others are closed and counted") {
    frontend f;
    auto const thrown_out = [&](auto const& bytes) {
        detail::descriptor const made = connected_to(f.address());
        REQUIRE(::send(made.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
        CHECK(closes(made.get()));
    };
    thrown_out(std::string("GET / HTTP/1.1\r\n\r\n"));
    thrown_out(std::string("HE") + std::string(40, 'x'));
    detail::byte_buffer rank;
    wire::append_message(rank, wire::message_kind::knock, 1, 0, {}, ensembles::protocol_version);
    thrown_out(rank); // of a world
    detail::byte_buffer early;
    ensembles::append_message(early, message::hello, ensembles::hello{}.write());
    thrown_out(early); // before the challenge
    detail::byte_buffer leave;
    ensembles::append_message(leave, message::leave, {});
    thrown_out(leave);
    CHECK(f.comes_true([](auto const& c) { return c.unidentified == 5; }));
    CHECK(f.sink.heard.empty());
}

TEST_CASE("acceptor: a slow stranger has handshake_time, and one that is admitted has it for its lane") {
    ensembles::acceptor_options options = acceptor_options();
    options.handshake_time = milliseconds(200);
    frontend f(options);
    detail::descriptor const silent = connected_to(f.address());
    detail::descriptor const slow = connected_to(f.address());
    detail::byte_buffer knock;
    ensembles::append_message(knock, message::apply, {});
    REQUIRE(::send(slow.get(), knock.data(), 20, 0) == 20);
    CHECK(closes(silent.get()));
    CHECK(closes(slow.get()));
    CHECK(f.comes_true([](auto const& c) { return c.unidentified == 2; }));
}

TEST_CASE("acceptor: a flood of strangers costs 64 places, and a member comes in beside them") {
    frontend f;
    std::vector<detail::descriptor> flood;
    for (int i = 0; i < 200; ++i) flood.push_back(connected_to(f.address()));
    member_peer peer(f.address(), 3);
    peer.join();
    for (int i = 0; i < 100; ++i) flood.push_back(connected_to(f.address()));
    detail::descriptor const lane = peer.lane(f.address());
    f.sink.heard.next("admitted");
    CHECK(f.comes_true([](auto const& c) { return c.unidentified >= 236; }));
}

TEST_CASE("acceptor: a local member gets memory over a unix socket; every packet has one descriptor") {
    frontend f(acceptor_options(), true);
    member_peer peer(f.address(), 3);
    peer.join();
    REQUIRE_FALSE(peer.told.local.empty());
    auto const dial = [&] {
        return ensembles::control_link(detail::dial_locally(peer.told.local), false, true);
    };
    {
        ensembles::control_link made = dial(); // says that it is a lane by tcp
        peer.lane_said.ticket = peer.told.ticket;
        peer.lane_said.kind = herring::lane::tcp;
        made.send(message::lane_hello, peer.lane_said.write());
        CHECK(closes(made.socket()));
    }
    {
        ensembles::control_link made = dial(); // brings no memory
        peer.greet(made, herring::lane::shared);
        CHECK_THROWS(peer.prove(made, -1));
    }
    {
        ensembles::control_link made = dial(); // a control connection does not go there
        made.send(message::apply, {});
        CHECK(closes(made.socket()));
    }
    ensembles::control_link made = dial();
    peer.greet(made, herring::lane::shared);
    detail::descriptor const mine = some_memory();
    detail::descriptor const theirs = peer.prove(made, mine.get());
    CHECK(theirs.get() >= 0);
    call const got = f.sink.heard.next("admitted");
    CHECK(got.ends.is_shared());
    CHECK(got.ends.memory >= 0);
    CHECK(got.ends.socket == -1);
}

TEST_CASE("acceptor: a process of another user gets no memory, whatever it knows") {
    frontend f(acceptor_options(), true);
    member_peer peer(f.address(), 3);
    peer.join();
    another_user const other;
    if (!other.made) {
        MESSAGE("SKIPPED: only root can be another user");
        return;
    }
    ensembles::control_link made(detail::dial_locally(peer.told.local), false, true);
    REQUIRE(made.socket() >= 0);
    CHECK_THROWS_AS(peer.greet(made, herring::lane::shared), std::runtime_error);
    CHECK(f.comes_true([](auto const& c) { return c.unidentified == 1; }));
}

TEST_CASE("acceptor: a member of another machine is offered no memory") {
    frontend f(acceptor_options(), true);
    member_peer peer(f.address(), 3);
    peer.said.boot = "elsewhere";
    peer.join();
    CHECK(peer.told.local.empty());
}

TEST_CASE("acceptor: the roster grows at the end") {
    frontend f;
    f.at->add_member("c");
    CHECK_THROWS_AS(f.at->add_member("c"), herring::error);
    member_peer peer(f.address(), 3, "c");
    peer.join();
    CHECK(peer.told.facts.peer == 2);
    detail::descriptor const lane = peer.lane(f.address());
    CHECK(f.sink.heard.next("admitted").index == 2);
}

TEST_CASE("acceptor: its end is told to members") {
    std::optional<frontend> f(std::in_place);
    member_peer peer(f->address(), 3);
    peer.join();
    detail::descriptor const lane = peer.lane(f->address());
    f->sink.heard.next("admitted");
    f.reset();
    await(peer.link, message::goodbye);
}

TEST_CASE("acceptor: options that cannot be are named") {
    auto const error_of = [](auto&& change) -> std::string {
        ensembles::acceptor_options options = acceptor_options();
        frontend_sink sink;
        change(options);
        try {
            acceptor const made(options, a_shape(), {"a"}, sink);
        } catch (herring::error const& why) {
            return why.what();
        }
        return {};
    };
    using options = ensembles::acceptor_options;
    CHECK(error_of([](options&) {}).empty());
    CHECK(says(error_of([](options& o) { o.address = "here"; }), "has no port"));
    CHECK(says(error_of([](options& o) { o.address = "192.0.2.1:0"; }), "cannot listen on '192.0.2.1:0'"));
    CHECK(says(error_of([](options& o) {
                   o.address = "0.0.0.0:0";
                   o.secret.reset();
               }),
               "every interface of this machine"));
    CHECK(error_of([](options& o) { o.address = "0.0.0.0:0"; }).empty());
    CHECK(says(error_of([](options& o) { o.credits = 0; }), "credits is 0"));
    CHECK(says(error_of([](options& o) { o.in_flight = 0; }), "in_flight is 0"));
    CHECK(says(error_of([](options& o) { o.replicas = 0; }), "replicas is 0"));
    CHECK(says(error_of([](options& o) { o.heartbeat = o.peer_timeout; }), "heartbeat is"));
    CHECK(says(error_of([](options& o) { o.peer_timeout = milliseconds(1); }), "peer_timeout is 1 ms"));
    CHECK(says(error_of([](options& o) { o.handshake_time = milliseconds(1); }), "handshake_time is 1 ms"));
    CHECK(says(error_of([](options& o) { o.pending = 0; }), "pending is 0"));
    CHECK(says(error_of([](options& o) { o.lanes = herring::lane::shared; }), "lanes are 'shared'"));
    CHECK(says(error_of([](options& o) { o.secret = "correct horse"; }),
               "frontend_options::secret has 13 characters"));
    CHECK(says(error_of([](options& o) { o.secret = ""; }), "frontend_options::secret is empty"));
    CHECK(says(error_of([](options& o) {
                   o.secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg";
               }),
               "frontend_options::secret has a character that is no hexadecimal digit"));
    CHECK(says(error_of([](options& o) {
                   o.secret.reset();
                   o.require_secret = true;
               }),
               "frontend_options::require_secret"));
}

} // namespace ensemble_acceptor_test
