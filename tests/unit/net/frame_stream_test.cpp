// herring: tests of net/frame_stream.hpp over socket pairs: short writes, withdrawn payloads.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/frame_stream.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/socket.h>

namespace net_frame_stream_test {

using namespace herring::detail;

using bytes = std::vector<std::byte>;

struct pair {
    descriptor a, b;
    explicit pair(int kind = SOCK_STREAM) {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
        a = descriptor(both[0]);
        b = descriptor(both[1]);
    }
    /// What has come at `b`, `most` bytes of it.
    bytes take(std::size_t most = 1 << 20) const {
        bytes all(most);
        ssize_t const got = ::recv(b.get(), all.data(), most, 0);
        all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return all;
    }
};

bytes pattern(std::uint64_t seed, std::size_t length) {
    bytes made(length);
    for (std::size_t i = 0; i < length; ++i) made[i] = static_cast<std::byte>(seed * 37 + i * 11 + i / 251);
    return made;
}
void append(bytes& to, std::span<std::byte const> more) { to.insert(to.end(), more.begin(), more.end()); }

constexpr std::size_t most_head = 24;

/// A writer, its messages, and what it tells of them. The note of a message is its place among all.
struct writer {
    pair sockets;
    frame_writer<most_head, std::size_t> out;
    std::vector<bytes> payloads;
    std::vector<std::size_t> left, withdrawn;
    bytes expected, got, bounce = bytes(300'000);

    explicit writer(std::size_t messages, int kind = SOCK_STREAM) : sockets(kind), out(messages) {
        payloads.reserve(1000);
        int const least = 1; // the kernel makes its minimum of it
        if (kind == SOCK_STREAM) ::setsockopt(sockets.a.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    }
    void push(std::size_t length, std::size_t head_bytes = most_head, bool is_due = true) {
        REQUIRE_FALSE(out.is_full());
        std::size_t const note = payloads.size();
        payloads.push_back(pattern(note, length));
        auto const head = pattern(note + 100, head_bytes);
        auto& m = out.push();
        std::copy(head.begin(), head.end(), m.head.begin());
        m.head_bytes = head_bytes;
        m.from = payloads.back().data();
        m.length = length;
        m.note = note;
        if (!is_due) return;
        append(expected, head);
        append(expected, payloads.back());
    }
    int write() {
        return out.write(sockets.a, [&](auto const& m) {
            CHECK((m.is_withdrawn() || m.length == payloads[m.note].size()));
            (m.is_withdrawn() ? withdrawn : left).push_back(m.note);
            std::fill(payloads[m.note].begin(), payloads[m.note].end(), std::byte{0xEE}); // it may be reused
        });
    }
    void withdraw(std::size_t note) {
        out.withdraw([&](std::size_t of) { return of == note; }, bounce.data());
        std::fill(payloads[note].begin(), payloads[note].end(), std::byte{0xEE});
    }
    void write_all() {
        for (int rounds = 0; !out.is_empty() && rounds < 100'000; ++rounds) {
            REQUIRE(write() == 0);
            append(got, sockets.take(1000));
        }
        REQUIRE(out.is_empty());
        for (bytes more = sockets.take(); !more.empty(); more = sockets.take()) append(got, more);
        CHECK(got == expected);
    }
};

TEST_CASE(
    "frame writer: messages leave in order, whatever the socket takes at once, and the queue goes round") {
    writer w(40); // more than leave in one call
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < 40; ++i) w.push(i % 3 == 0 ? 0 : i * 331 + i / 39 * 100'000, 8 + i % 17);
        w.write_all();
    }
    REQUIRE(w.left.size() == 120);
    for (std::size_t i = 0; i < 120; ++i) CHECK(w.left[i] == i);
}

TEST_CASE("frame writer: one call takes 16 messages, heads and payloads") {
    writer w(20, SOCK_SEQPACKET); // a record for each call
    for (std::size_t i = 0; i < 20; ++i) w.push(10 * i, 8 + i % 17);
    REQUIRE(w.write() == 0);
    CHECK(w.left.size() == 20);
    bytes const first = w.sockets.take(), second = w.sockets.take();
    std::size_t due = 0;
    for (std::size_t i = 0; i < 16; ++i) due += 10 * i + 8 + i % 17;
    CHECK(first.size() == due);
    CHECK(first.size() + second.size() == w.expected.size());
}

TEST_CASE("frame writer: the rest of a payload that goes away is sent from the bounce buffer") {
    for (std::size_t const read_before : {0u, 20u, 5000u}) {
        writer w(3);
        w.push(300'000);
        REQUIRE(w.write() == 0);
        append(w.got, w.sockets.take(read_before));
        w.push(500, most_head, false);
        w.push(700);
        w.withdraw(1); // its first byte has not left
        w.withdraw(0);
        w.write_all();
        CHECK(w.left == std::vector<std::size_t>{0, 2});
        CHECK(w.withdrawn == std::vector<std::size_t>{1});
    }
}

TEST_CASE("frame writer: what has not begun when it goes away is not sent") {
    writer w(4);
    w.push(1000, most_head, false); // never written before
    w.push(1000);
    w.withdraw(0);
    w.write_all();
    CHECK(w.withdrawn == std::vector<std::size_t>{0});
    CHECK(w.left == std::vector<std::size_t>{1});
    w.push(1000, most_head, false); // alone: nothing is written
    w.withdraw(2);
    w.write_all();
    CHECK(w.withdrawn == std::vector<std::size_t>{0, 2});
}

TEST_CASE("frame writer: a closed socket is an error, and no signal") {
    writer w(1);
    w.sockets.b = descriptor();
    w.push(10);
    CHECK(w.write() == EPIPE);
    CHECK(w.left.empty());
}

} // namespace net_frame_stream_test
