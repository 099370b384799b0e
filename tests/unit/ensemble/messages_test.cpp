// herring: tests of ensemble/messages.hpp: what is written comes back, and what nobody would write is refused.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/messages.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ensemble_messages_test {

namespace ensembles = herring::detail::ensembles;
namespace wire = herring::detail::wire;
using herring::detail::byte_buffer;

ensembles::hello a_hello() {
    ensembles::hello made;
    made.nonce.fill(std::byte{7});
    made.has_secret = true;
    made.incarnation = 42;
    made.replica = 1;
    made.credits = 8;
    made.lanes = herring::lane::shared;
    made.name = "left";
    made.boot = "boot";
    made.shape = {"speech", "combine::mean", "float", 8, 32, 64, "v1"};
    return made;
}
ensembles::admit an_admit() {
    ensembles::admit made;
    made.wrapped.fill(std::byte{9});
    made.ticket = 77;
    made.facts.peer = 5;
    made.facts.member = 2;
    made.facts.replicas = 2;
    made.facts.credits = 4;
    made.facts.in_flight = 16;
    made.facts.request_bytes = 64;
    made.facts.row_bytes = 32;
    made.facts.frontend = 11;
    made.local = "herring-x";
    return made;
}

/// Read whole; refused cut anywhere, and with a byte more.
template <class Message> Message read_back(Message const& sent) {
    byte_buffer const body = sent.write();
    std::span<std::byte const> const all(body);
    for (std::size_t size = 0; size < all.size(); ++size) {
        Message cut;
        CHECK_FALSE(cut.read(all.first(size)));
    }
    std::vector<std::byte> more(all.begin(), all.end());
    more.push_back(std::byte{0});
    Message longer;
    CHECK_FALSE(longer.read(more));
    Message found;
    CHECK(found.read(all));
    return found;
}
template <class Message, class Change> bool refused(Message made, Change&& change) {
    change(made);
    Message found;
    return !found.read(made.write());
}

TEST_CASE("ensemble messages: a hello comes back as it was") {
    ensembles::hello const sent = a_hello(), found = read_back(sent);
    CHECK(found.nonce == sent.nonce);
    CHECK(found.has_secret);
    CHECK(found.incarnation == 42);
    CHECK(found.replica == 1);
    CHECK(found.credits == 8);
    CHECK(found.lanes == herring::lane::shared);
    CHECK(found.name == "left");
    CHECK(found.boot == "boot");
    CHECK(found.shape == sent.shape);
    CHECK(refused(a_hello(), [](ensembles::hello& h) { h.incarnation = 0; }));
    CHECK(refused(a_hello(), [](ensembles::hello& h) { h.credits = 0; }));
    CHECK(refused(a_hello(), [](ensembles::hello& h) { h.credits = ensembles::most_credits + 1; }));
    CHECK(refused(a_hello(), [](ensembles::hello& h) { h.lanes = static_cast<herring::lane>(3); }));
}

TEST_CASE("ensemble messages: the longest hello is within the limit, and longer texts are cut") {
    ensembles::hello long_one = a_hello();
    for (std::string* const text :
         {&long_one.name, &long_one.boot, &long_one.shape.ensemble, &long_one.shape.type,
          &long_one.shape.policies, &long_one.shape.model_version})
        *text = std::string(3000, 'x');
    byte_buffer const body = long_one.write();
    CHECK(body.size() + wire::proof_bytes <= ensembles::hello_limit);
    ensembles::hello found;
    CHECK(found.read(body));
    CHECK(found.name.size() == ensembles::most_name);
    CHECK(found.shape.policies.size() == ensembles::shape::most_policies);
}

TEST_CASE("ensemble messages: an admission comes back as it was, and contradictions are refused") {
    ensembles::admit const sent = an_admit(), found = read_back(sent);
    CHECK(found.wrapped == sent.wrapped);
    CHECK(found.ticket == 77);
    CHECK(found.facts.peer == 5);
    CHECK(found.facts.member == 2);
    CHECK(found.facts.credits == 4);
    CHECK(found.facts.in_flight == 16);
    CHECK(found.facts.frontend == 11);
    CHECK(found.facts.heartbeat == std::chrono::milliseconds(500));
    CHECK(found.facts.peer_timeout == std::chrono::milliseconds(5000));
    CHECK(found.local == "herring-x");
    CHECK(refused(an_admit(), [](ensembles::admit& a) { a.facts.replicas = 0; }));
    CHECK(refused(an_admit(), [](ensembles::admit& a) { a.facts.peer = 6; }));
    CHECK(refused(an_admit(), [](ensembles::admit& a) { a.facts.credits = 0; }));
    CHECK(refused(an_admit(), [](ensembles::admit& a) { a.facts.in_flight = ensembles::most_credits + 1; }));
    CHECK(refused(an_admit(), [](ensembles::admit& a) { a.facts.heartbeat = std::chrono::milliseconds(0); }));
    CHECK(refused(an_admit(), [](ensembles::admit& a) { a.facts.heartbeat = std::chrono::hours(1); }));
}

TEST_CASE("ensemble messages: a refusal has a reason, and words that can be shown") {
    ensembles::refuse const sent{herring::admission_refusal::secret, "its \x1b[31m secret"};
    ensembles::refuse const found = read_back(sent);
    CHECK(found.reason == herring::admission_refusal::secret);
    CHECK(found.text == "its ?[31m secret");
    CHECK(found.as_failure().what == herring::errc::mismatch);
    CHECK(ensembles::refuse{herring::admission_refusal::replaced, ""}.as_failure().what ==
          herring::errc::refused);
    CHECK(refused(sent, [](ensembles::refuse& r) { r.reason = herring::admission_refusal::none; }));
    CHECK(
        refused(sent, [](ensembles::refuse& r) { r.reason = static_cast<herring::admission_refusal>(14); }));
}

TEST_CASE("ensemble messages: the name of a stranger can be written into a log") {
    ensembles::hello said = a_hello();
    said.name = "\xff\xfe\x1b";
    CHECK(read_back(said).name == "???");
    said.name = "gr\xc3\xb6\xc3\x9f"
                "e";
    CHECK(read_back(said).name == said.name);
}

TEST_CASE("ensemble messages: the hello of a lane is of tcp or of memory") {
    ensembles::lane_hello sent;
    sent.ticket = 3;
    sent.kind = herring::lane::shared;
    CHECK(read_back(sent).ticket == 3);
    CHECK(refused(sent, [](ensembles::lane_hello& l) { l.kind = herring::lane::any; }));
    CHECK(refused(sent, [](ensembles::lane_hello& l) { l.kind = static_cast<herring::lane>(7); }));
}

TEST_CASE(
    "ensemble messages: a kind that an end does not send may have no body, and the others are bounded") {
    for (int kind = 0; kind < 100; ++kind)
        for (bool const from_frontend : {false, true})
            for (bool const admitted : {false, true})
                CHECK(ensembles::most_body(static_cast<ensembles::message>(kind), from_frontend, admitted) <=
                      ensembles::hello_limit);
    CHECK(ensembles::most_body(ensembles::message::hello, true, false) == 0);
    CHECK(ensembles::most_body(ensembles::message::hello, false, true) == 0);
    CHECK(ensembles::most_body(ensembles::message::admit, false, false) == 0);
    CHECK(ensembles::most_body(ensembles::message::admit, true, true) == 0);
    CHECK(an_admit().write().size() + wire::proof_bytes <=
          ensembles::most_body(ensembles::message::admit, true, false));
}

} // namespace ensemble_messages_test
