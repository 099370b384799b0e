// herring: tests of ensemble/control_link.hpp: whole messages, however they come, and nothing beyond them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/control_link.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace ensemble_control_link_test {

namespace ensembles = herring::detail::ensembles;
namespace wire = herring::detail::wire;
using ensembles::control_link;
using ensembles::incoming;
using ensembles::message;
using herring::detail::byte_buffer;
using herring::detail::descriptor;
using what = incoming::what;

/// A frontend's end, and a socket in the hands of the test.
struct ends {
    control_link frontend{};
    descriptor member{};
    explicit ends(int kind = SOCK_STREAM) {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
        frontend = control_link(descriptor(both[0]), true, kind == SOCK_SEQPACKET);
        member = descriptor(both[1]);
    }
    void give(std::span<std::byte const> bytes) {
        REQUIRE(::send(member.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
};

byte_buffer whole(message kind, std::size_t bytes, std::uint16_t version = ensembles::protocol_version) {
    std::vector<std::byte> const body(bytes, std::byte{5});
    byte_buffer made;
    ensembles::append_message(made, kind, body, version);
    return made;
}

TEST_CASE("control_link: a message in single bytes, and nothing is read beyond it") {
    ends e;
    byte_buffer const sent = whole(message::hello, 300);
    for (std::size_t i = 0; i + 1 < sent.size(); ++i) {
        e.give(std::span<std::byte const>(sent).subspan(i, 1));
        CHECK(e.frontend.receive().found == what::nothing);
    }
    byte_buffer rest;
    rest.append(std::span<std::byte const>(sent).last(1));
    rest.append(wire::proof{}); // of the lane
    e.give(rest);
    incoming const got = e.frontend.receive();
    CHECK(got.found == what::whole);
    CHECK(got.kind == message::hello);
    CHECK(got.body.size() == 300);
    std::array<std::byte, 64> left{};
    CHECK(::recv(e.frontend.socket(), left.data(), left.size(), 0) == 32);
}

TEST_CASE("control_link: several messages come one by one, then the end") {
    ends e;
    byte_buffer both = whole(message::apply, 0);
    both.append(whole(message::hello, 7));
    e.give(both);
    CHECK(e.frontend.receive().kind == message::apply);
    CHECK(e.frontend.receive().body.size() == 7);
    CHECK(e.frontend.receive().found == what::nothing);
    e.member = descriptor();
    { descriptor const gone = std::move(e.member); }
}

TEST_CASE("control_link: foreign bytes, a wrong checksum, a size beyond the kind's, another version") {
    {
        ends e;
        e.give(std::as_bytes(std::span("G", 1)));
        CHECK(e.frontend.receive().found == what::wrong);
    }
    {
        ends e;
        byte_buffer changed = whole(message::hello, 9);
        changed.data()[changed.size() - 1] ^= std::byte{1};
        e.give(changed);
        CHECK(e.frontend.receive().found == what::wrong);
    }
    {
        ends e;
        e.give(std::span<std::byte const>(whole(message::hello, ensembles::hello_limit + 1)).first(32));
        CHECK(e.frontend.receive().found == what::wrong); // before a byte of it
    }
    {
        ends e;
        e.give(whole(message::heartbeat, 1));
        CHECK(e.frontend.receive().found == what::wrong);
    }
    {
        ends e;
        e.give(whole(message::apply, 0, 9));
        incoming const got = e.frontend.receive();
        CHECK(got.found == what::other_version);
        CHECK(got.version == 9);
    }
    {
        ends e;
        { descriptor const gone = std::move(e.member); }
        CHECK(e.frontend.receive().found == what::closed);
    }
}

TEST_CASE("control_link: with keys a message without the right tag is wrong") {
    herring::detail::secret_key a, b;
    b.bytes()[0] = std::byte{1};
    ends e;
    e.frontend.admitted();
    e.frontend.protect(wire::message_keys(a, b));
    control_link member(std::move(e.member), false, false);
    member.admitted();
    member.protect(wire::message_keys(b, a));
    member.send(message::heartbeat, {});
    CHECK(e.frontend.receive().found == what::whole);
    e.frontend.send(message::heartbeat, {});
    CHECK(member.receive().found == what::whole);
    byte_buffer bare = whole(message::heartbeat, 0);
    bare.append(wire::message_tag{});
    REQUIRE(::send(member.socket(), bare.data(), bare.size(), 0) == static_cast<ssize_t>(bare.size()));
    CHECK(e.frontend.receive().found == what::wrong);
}

TEST_CASE("control_link: who does not read what it is sent is given up, in bounded memory") {
    ends e;
    for (int i = 0; i < 100'000 && e.frontend.receive().found != what::closed; ++i)
        e.frontend.send(message::heartbeat, {});
    CHECK(e.frontend.receive().found == what::closed);
}

TEST_CASE("control_link: packets are whole messages, with at most one descriptor") {
    {
        ends e(SOCK_SEQPACKET);
        byte_buffer const sent = whole(message::lane_proof, 32);
        REQUIRE(herring::detail::send_packet(e.member.get(), sent, 0));
        incoming const got = e.frontend.receive();
        CHECK(got.found == what::whole);
        CHECK(got.passed.get() >= 0);
        CHECK(got.body.size() == 32);
    }
    {
        ends e(SOCK_SEQPACKET);
        byte_buffer both = whole(message::apply, 0);
        both.append(whole(message::apply, 0));
        e.give(both);
        CHECK(e.frontend.receive().found == what::wrong);
    }
    {
        ends e(SOCK_SEQPACKET);
        e.give(std::span<std::byte const>(whole(message::apply, 0)).first(5));
        CHECK(e.frontend.receive().found == what::wrong);
    }
    {
        ends e(SOCK_SEQPACKET);
        byte_buffer const large = whole(message::hello, 600);
        e.give(large);
        CHECK(e.frontend.receive().found == what::wrong);
    }
}

} // namespace ensemble_control_link_test
