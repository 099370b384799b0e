// herring: tests of ensemble/dialler.hpp: comes in, comes again, stays out where it was refused, leaves; against acceptors and false ones.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dialler.hpp"

#include "herring/ensemble/acceptor.hpp"

#include "doctest/doctest.h"
#include "ensemble_control.hpp"
#include "sanitizers.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace ensemble_dialler_test {

using namespace ensemble_control;
using ensembles::acceptor;
using ensembles::dialler;
using herring::admission_refusal;
using herring::errc;
using std::chrono::milliseconds;

using frontend = listening_frontend;

struct member {
    member_sink sink{};
    std::optional<dialler<member_sink>> at{};
    explicit member(ensembles::dialler_options const& options, ensembles::shape const& own = a_shape(),
                    bool memory = false) {
        sink.has_memory = memory;
        at.emplace(options, own, sink);
    }
};

bool says(std::string const& text, char const* piece) {
    bool const found = text.find(piece) != std::string::npos;
    if (!found) MESSAGE("'" << text << "' lacks '" << piece << "'");
    return found;
}

TEST_CASE("dialler: comes in; both ends have the same lane, and heartbeats keep them") {
    ensembles::acceptor_options options = acceptor_options();
    options.heartbeat = milliseconds(20);
    frontend f(options);
    member m(dialler_options({f.address()}));
    call mine = m.sink.heard.next("connected");
    call theirs = f.sink.heard.next("admitted");
    CHECK(theirs.incarnation == m.at->incarnation());
    CHECK(mine.facts.heartbeat == milliseconds(20));
    CHECK(::send(mine.ends.socket, "row", 3, 0) == 3);
    char word[4] = {};
    pollfd ready{theirs.ends.socket, POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    CHECK(::recv(theirs.ends.socket, word, sizeof word, 0) == 3);
    CHECK(::send(theirs.ends.socket, "ask", 3, 0) == 3);
    ready.fd = mine.ends.socket;
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    CHECK(::recv(mine.ends.socket, word, sizeof word, 0) == 3);
}

TEST_CASE("dialler: memory on one machine, where both have it and neither wants tcp") {
    auto const shared = [](herring::lane of_frontend, herring::lane of_member, bool memory_there,
                           bool memory_here) {
        ensembles::acceptor_options options = acceptor_options();
        options.lanes = of_frontend;
        frontend f(options, memory_there);
        ensembles::dialler_options own = dialler_options({f.address()});
        own.lanes = of_member;
        member m(own, a_shape(), memory_here);
        call const mine = m.sink.heard.next("connected");
        call const theirs = f.sink.heard.next("admitted");
        CHECK(mine.ends.is_shared() == theirs.ends.is_shared());
        CHECK((mine.ends.memory >= 0) == mine.ends.is_shared());
        CHECK((theirs.ends.memory >= 0) == mine.ends.is_shared());
        CHECK((mine.ends.socket < 0) == mine.ends.is_shared());
        return mine.ends.is_shared();
    };
    using herring::lane;
    CHECK(shared(lane::any, lane::any, true, true));
    CHECK(shared(lane::shared, lane::any, true, true));
    CHECK(shared(lane::any, lane::shared, true, true));
    CHECK_FALSE(shared(lane::tcp, lane::any, true, true));
    CHECK_FALSE(shared(lane::any, lane::tcp, true, true));
    CHECK_FALSE(shared(lane::any, lane::any, false, true));
    CHECK_FALSE(shared(lane::any, lane::any, true, false));
}

TEST_CASE("dialler: without memory of its own, lane::shared goes on trying and says why") {
    frontend f(acceptor_options(), true);
    ensembles::dialler_options own = dialler_options({f.address()});
    own.lanes = herring::lane::shared;
    member m(own);
    CHECK(says(m.sink.heard.next("disconnected").text, "this member has no memory to share"));
}

TEST_CASE("dialler: of a frontend of another user it takes no memory: a lane by TCP, or none, and says why") {
    std::optional<frontend> f;
    {
        another_user const other;
        if (!other.made) {
            MESSAGE("SKIPPED: only root can be another user");
            return;
        }
        f.emplace(acceptor_options(), true);
    }
    ensembles::dialler_options own = dialler_options({f->address()});
    {
        member m(own, a_shape(), true);
        CHECK_FALSE(m.sink.heard.next("connected").ends.is_shared());
    }
    own.lanes = herring::lane::shared;
    member m(own, a_shape(), true);
    CHECK(says(m.sink.heard.next("disconnected").text, "the frontend is another user's"));
}

TEST_CASE("dialler: a frontend that ends and comes again is found again; two are independent") {
    std::optional<frontend> first(std::in_place);
    frontend second;
    ensembles::acceptor_options again = acceptor_options();
    again.address = first->address();
    member m(dialler_options({first->address(), second.address()}));
    for (int i = 0; i < 2; ++i) m.sink.heard.next("connected");
    first.reset();
    call const gone = m.sink.heard.next("disconnected");
    CHECK(gone.index == 0);
    CHECK(says(gone.text, "the frontend closes"));
    first.emplace(again);
    CHECK(m.sink.heard.await("connected").index == 0);
    CHECK(first->sink.heard.next("admitted").incarnation == m.at->incarnation());
    CHECK(second.at->counters().lost == 0);
}

TEST_CASE("dialler: a broken lane is dialled again, whoever finds it broken") {
    frontend f;
    member m(dialler_options({f.address()}));
    m.sink.heard.next("connected");
    call const once = f.sink.heard.next("admitted");
    m.at->drop(0, "a frame with a wrong head");
    CHECK(says(m.sink.heard.next("disconnected").text, "a frame with a wrong head"));
    m.sink.heard.next("connected");
    f.sink.heard.await("lost");
    f.sink.heard.next("admitted");
    f.at->drop(0, once.incarnation, "a row too many");
    CHECK(says(m.sink.heard.next("disconnected").text, "said goodbye: a row too many"));
    m.sink.heard.next("connected");
}

TEST_CASE("dialler: a refusal that is proved is final, and its words are both ends'") {
    frontend f;
    {
        ensembles::shape other = a_shape();
        other.model_version = "v2";
        member m(dialler_options({f.address()}), other);
        call const got = m.sink.heard.next("refused");
        CHECK(got.why.what == errc::mismatch);
        CHECK(says(got.text, "'v2' at the member, 'v1' at the frontend"));
        CHECK(says(f.sink.heard.next("refused").text, "'v2' at the member, 'v1' at the frontend"));
        CHECK(m.at->leave(plenty)); // nothing is left to leave
    }
    {
        ensembles::dialler_options own = dialler_options({f.address()});
        own.name = "nobody";
        member m(own);
        call const got = m.sink.heard.next("refused");
        CHECK(got.why.what == errc::refused);
        CHECK(says(got.text, "has no 'nobody'; it has 'a', 'b'"));
    }
    CHECK(f.at->counters().unidentified == 0);
}

TEST_CASE("dialler: a wrong secret ends it after three times in two seconds; one that was admitted before "
          "goes on") {
    std::optional<frontend> f(std::in_place);
    ensembles::dialler_options own = dialler_options({f->address()});
    std::string const another(64, 'b');
    own.secret = another;
    member wrong(own);
    CHECK(says(wrong.sink.heard.next("disconnected").text,
               "says, unverified: member 'a': the member's secret is not"));
    call const got = wrong.sink.heard.next("refused");
    CHECK(got.why.what == errc::mismatch);
    CHECK(says(got.text, "unverified"));
    CHECK(f->at->counters().refused[static_cast<int>(admission_refusal::secret)] >= 3);
}

TEST_CASE("dialler: without a secret a refusal is believed at once") {
    frontend f;
    ensembles::dialler_options own = dialler_options({f.address()});
    own.secret.reset();
    member m(own);
    CHECK(says(m.sink.heard.next("refused").text, "the frontend has a secret, the member has none"));
}

TEST_CASE("dialler: a newer process takes over, and the older does not come back") {
    frontend f;
    member older(dialler_options({f.address()}));
    older.sink.heard.next("connected");
    std::uint64_t const first = f.sink.heard.next("admitted").incarnation;
    while (ensembles::new_incarnation() >> 20 == first >> 20) {
    }
    member newer(dialler_options({f.address()}));
    newer.sink.heard.next("connected");
    older.sink.heard.next("disconnected");
    call const got = older.sink.heard.next("refused");
    CHECK(got.why.what == errc::refused);
    CHECK(says(got.text, "replaced"));
    CHECK(f.sink.heard.next("lost").incarnation == first);
    f.sink.heard.next("refused");
    CHECK(f.sink.heard.next("admitted").incarnation == newer.at->incarnation());
    CHECK(f.at->counters().replaced == 1);
}

TEST_CASE("dialler: leaves once every frontend has let it go, and is not back after that") {
    frontend f, g;
    member m(dialler_options({f.address(), g.address()}));
    for (int i = 0; i < 2; ++i) m.sink.heard.next("connected");
    std::uint64_t const who = f.sink.heard.next("admitted").incarnation;
    g.sink.heard.next("admitted");
    CHECK_FALSE(m.at->leave(milliseconds(1))); // nobody has said «drained»
    f.sink.heard.next("draining");
    g.sink.heard.next("draining");
    f.at->drained(0, who);
    CHECK(says(m.sink.heard.next("disconnected").text, "this member left"));
    g.at->drained(0, who);
    CHECK(m.at->leave(plenty));
    CHECK(says(f.sink.heard.next("lost").text, "it left"));
    CHECK(says(g.sink.heard.next("lost").text, "it left"));
    m.sink.heard.next("disconnected");
    CHECK(m.sink.heard.empty());
}

TEST_CASE("dialler: a false frontend learns nothing that admits it, and is tried again") {
    false_frontend there;
    member m(dialler_options({there.address}));
    {
        ensembles::control_link met = there.accept();
        CHECK(hear(met).kind == message::apply);
        met.send(message::challenge, wire::challenge{{}, detail::random_nonce(), true}.write());
        CHECK(hear(met).kind == message::hello);
        ensembles::admit told;
        told.facts.credits = told.facts.in_flight = 1;
        detail::byte_buffer body;
        body.append(wire::proof{});
        body.append(told.write());
        met.send(message::admit, body);
        CHECK(closes(met.socket()));
        CHECK(says(m.sink.heard.next("disconnected").text, "did not prove that it has the secret"));
    }
    {
        ensembles::control_link met = there.accept(); // claims that no secret is needed
        CHECK(hear(met).kind == message::apply);
        met.send(message::challenge, wire::challenge{{}, detail::random_nonce(), false}.write());
        heard_message const said = hear(met);
        std::span<std::byte const> const body(said.body);
        wire::proof shown{};
        REQUIRE(ensembles::read_32(body.last(32), shown));
        CHECK(shown == wire::proof{});
        ensembles::admit told;
        told.facts.credits = told.facts.in_flight = 1;
        detail::byte_buffer answer;
        answer.append(wire::proof{});
        answer.append(told.write());
        met.send(message::admit, answer);
        CHECK(closes(met.socket()));
    }
    for (int i = 0; i < 3; ++i) { // three refusals at once end nobody
        ensembles::control_link met = there.accept();
        CHECK(hear(met).kind == message::apply);
        met.send(message::refuse, ensembles::refuse{admission_refusal::member, "go away"}.write());
        CHECK(closes(met.socket()));
    }
    CHECK(says(m.sink.heard.next("disconnected").text, "unverified: go away"));
    ensembles::control_link met = there.accept();
    CHECK(hear(met).kind == message::apply);
    CHECK(m.sink.heard.empty());
    CHECK(::send(met.socket(), "HTTP/1.1 400", 12, 0) == 12);
    CHECK(closes(met.socket()));
    CHECK(says(m.sink.heard.next("disconnected").text, "no control message"));
}

TEST_CASE("dialler: a frontend that goes silent is left for another attempt") {
    false_frontend there;
    ensembles::dialler_options own = dialler_options({there.address});
    member m(own);
    ensembles::control_link met = there.accept();
    CHECK(hear(met).kind == message::apply);
    wire::challenge const asked{{}, detail::random_nonce(), true};
    detail::byte_buffer const challenge = asked.write();
    met.send(message::challenge, challenge);
    heard_message const said = hear(met);
    std::span<std::byte const> words;
    wire::proof shown{};
    REQUIRE(wire::split_proof(said.body, words, shown));
    wire::handshake const seen(ensembles::admission_names,
                               detail::secret(std::string(64, 'a')).key(asked.salt), challenge, words);
    CHECK(shown == seen.proof_of_dialler());
    ensembles::admit told;
    told.ticket = 5;
    told.facts.credits = told.facts.in_flight = 1;
    told.facts.heartbeat = milliseconds(20);
    told.facts.peer_timeout = milliseconds(300);
    detail::byte_buffer const body = told.write();
    detail::byte_buffer all;
    all.append(seen.proof_of_acceptor(body));
    all.append(body);
    met.send(message::admit, all);
    seen.wrap(told.wrapped);
    ensembles::control_link lane = there.accept();
    heard_message const greeted = hear(lane);
    CHECK(greeted.kind == message::lane_hello);
    wire::nonce const nonce = detail::random_nonce();
    lane.send(message::lane_challenge, nonce);
    heard_message const proved = hear(lane);
    wire::handshake const both(ensembles::lane_names, detail::secret_key(told.wrapped), greeted.body, nonce);
    std::array<std::byte, 32> proof{};
    REQUIRE(ensembles::read_32(proved.body, proof));
    CHECK(proof == both.proof_of_dialler());
    // What follows the proof at once is the lane's, and is not read by the control.
    detail::byte_buffer last;
    ensembles::append_message(last, message::lane_accept, both.proof_of_acceptor({}));
    last.append(std::as_bytes(std::span("ask", 3)));
    REQUIRE(::send(lane.socket(), last.data(), last.size(), 0) == static_cast<ssize_t>(last.size()));
    met.admitted();
    met.protect(seen.keys(true));
    call const mine = m.sink.heard.next("connected");
    CHECK(hear(met).kind == message::heartbeat); // and its tag is right
    char word[4] = {};
    CHECK(::recv(mine.ends.socket, word, sizeof word, 0) == 3);
    CHECK(std::string(word) == "ask");
    CHECK(says(m.sink.heard.next("disconnected").text, "no sign of life for 300 ms"));
    ensembles::control_link again = there.accept();
    CHECK(hear(again).kind == message::apply);
}

TEST_CASE("dialler: a slow frontend has handshake_time for an attempt") {
    false_frontend there;
    ensembles::dialler_options own = dialler_options({there.address});
    own.handshake_time = milliseconds(100);
    member m(own);
    ensembles::control_link const met = there.accept();
    CHECK(says(m.sink.heard.next("disconnected").text, "no answer from"));
}

TEST_CASE("dialler: a name is looked up, and each of its addresses tried") {
    frontend f;
    std::string const port = f.address().substr(f.address().rfind(':'));
    member m(dialler_options({"localhost" + port}));
    CHECK(m.sink.heard.await("connected").index == 0);
}

TEST_CASE("dialler: options that cannot be are named") {
    auto const error_of = [](auto&& change) -> std::string {
        ensembles::dialler_options options = dialler_options({"127.0.0.1:1"});
        member_sink sink;
        change(options);
        try {
            dialler<member_sink> const made(options, a_shape(), sink);
        } catch (herring::error const& why) {
            CHECK(why.code() == errc::bad_argument);
            return why.what();
        }
        return {};
    };
    using options = ensembles::dialler_options;
    CHECK(error_of([](options&) {}).empty());
    CHECK(says(error_of([](options& o) { o.frontends.clear(); }), "no frontend to dial"));
    CHECK(says(error_of([](options& o) { o.frontends = {"x"}; }),
               "member: bad argument: one of frontends is 'x', which has no port"));
    CHECK(says(error_of([](options& o) { o.name.clear(); }), "the name of this member is empty"));
    CHECK(says(error_of([](options& o) { o.replica = 64; }), "replica is 64"));
    CHECK(says(error_of([](options& o) { o.credits = 0; }), "credits is 0"));
    CHECK(says(error_of([](options& o) { o.handshake_time = milliseconds(1); }), "handshake_time is 1 ms"));
    CHECK(says(error_of([](options& o) { o.last_pause = milliseconds(0); }), "pauses go from"));
    CHECK(says(error_of([](options& o) { o.secret = "correct horse"; }),
               "member_options::secret has 13 characters"));
    CHECK(says(error_of([](options& o) { o.secret = ""; }), "member_options::secret is empty"));
    CHECK(says(error_of([](options& o) {
                   o.secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg";
               }),
               "member_options::secret has a character that is no hexadecimal digit"));
}

} // namespace ensemble_dialler_test
