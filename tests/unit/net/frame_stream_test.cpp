// herring: tests of net/frame_stream.hpp over socket pairs: short writes, withdrawn payloads, reads cut anywhere.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/frame_stream.hpp"

#include "doctest/doctest.h"

#include "herring/base/bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
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

/// A head of 16 bytes: "HEAD", envelope bytes, payload bytes.
struct head {
    std::uint32_t envelope = 0;
    std::uint64_t length = 0;
};
constexpr std::size_t head_bytes = 16;

bool decode(std::span<std::byte const, head_bytes> from, head& h) {
    h.envelope = get<std::uint32_t>(from.data() + 4);
    h.length = get<std::uint64_t>(from.data() + 8);
    return std::memcmp(from.data(), "HEAD", 4) == 0;
}

struct message {
    std::size_t length, envelope = 0;
    bool is_skipped = false;
};
bytes wire(std::span<message const> messages) {
    bytes all;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        bytes front(head_bytes);
        std::memcpy(front.data(), "HEAD", 4);
        put(front.data() + 4, static_cast<std::uint32_t>(messages[i].envelope));
        put(front.data() + 8, std::uint64_t{messages[i].length});
        append(all, front);
        append(all, pattern(i + 100, messages[i].envelope));
        append(all, pattern(i, messages[i].length));
    }
    return all;
}

/// A reader, and what it has found of `due`. Each payload has memory of its exact size, so that a sanitizer
/// sees what is written behind it.
struct reader {
    std::vector<message> due;
    pair sockets{};
    frame_reader<head, head_bytes> in;
    std::vector<std::unique_ptr<std::byte[]>> memory{};
    std::size_t complete = 0; // without those that were skipped
    int asked = 0;
    bool waits = false;

    explicit reader(std::vector<message> messages, std::size_t stash = 1000)
        : due(std::move(messages)), in(stash) {}

    stream_state read(int calls = 4) {
        return in.read(
            sockets.b, calls,
            [&](head const& h, std::span<std::byte const> envelope) -> landing {
                ++asked;
                if (waits) return {};
                std::size_t const i = memory.size();
                REQUIRE(i < due.size());
                CHECK(h.length == due[i].length);
                CHECK(std::ranges::equal(envelope, pattern(i + 100, due[i].envelope)));
                memory.push_back(std::make_unique<std::byte[]>(h.length));
                if (due[i].is_skipped) return {landing::action::skip};
                return {landing::action::land, h.length > 0 ? memory[i].get() : nullptr};
            },
            [&](head const& h) {
                std::size_t const i = memory.size() - 1; // the last that was asked for
                CHECK_FALSE(due[i].is_skipped);
                CHECK(h.length == due[i].length);
                auto const expected = pattern(i, due[i].length);
                CHECK(std::equal(expected.begin(), expected.end(), memory[i].get()));
                ++complete;
            });
    }
    void give(std::span<std::byte const> part) const {
        REQUIRE(::send(sockets.a.get(), part.data(), part.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(part.size()));
    }
    bool is_all_there() const {
        auto const skipped = std::ranges::count_if(due, [](auto const& m) { return m.is_skipped; });
        return memory.size() == due.size() && complete + static_cast<std::size_t>(skipped) == due.size();
    }
};

TEST_CASE("frame reader: messages with envelopes, cut at every byte into two reads") {
    std::vector<message> const messages{{5, 12}, {0}, {0, 24, true}, {70, 1, true}, {100}, {0, 1}, {300, 7}};
    bytes const all = wire(messages);
    for (std::size_t const stash : {std::size_t{40}, std::size_t{1000}})
        for (std::size_t cut = 0; cut <= all.size(); ++cut) {
            reader r(messages, stash);
            r.give(std::span(all).first(cut));
            REQUIRE(r.read(100) == stream_state::ok);
            r.give(std::span(all).subspan(cut));
            REQUIRE(r.read(100) == stream_state::ok);
            CHECK(r.is_all_there());
            CHECK_FALSE(r.in.is_blocked());
        }
}

TEST_CASE("frame reader: sizes around what is read along with a head, in pieces of many sizes") {
    std::vector<message> messages;
    for (std::size_t const length :
         {0u, 1u, 15u, 16u, 17u, 47u, 983u, 984u, 985u, 0u, 1000u, 1001u, 3017u, 0u, 70'000u, 9u})
        for (bool const is_skipped : {false, true}) messages.push_back({length, length % 25, is_skipped});
    bytes const all = wire(messages);
    for (std::size_t const piece : {7u, 999u, 1000u, 1001u, 4096u, 60'000u})
        for (int const calls : {1, 4}) {
            reader r(messages);
            std::span<std::byte const> rest(all);
            for (; !rest.empty(); rest = rest.subspan(std::min(piece, rest.size()))) {
                r.give(rest.first(std::min(piece, rest.size())));
                int reads = 0; // a skipped payload comes through the stash
                do REQUIRE(r.read(calls) == stream_state::ok);
                while (++reads < 80 && piece > 100 && !r.is_all_there());
            }
            CHECK(r.is_all_there());
        }
}

TEST_CASE("frame reader: small messages cost one read, and a read takes no more than its calls") {
    std::vector<message> const messages(40, {84});
    reader r(messages); // ten in the stash
    r.give(wire(messages));
    for (std::size_t calls = 1; calls <= 4; ++calls) {
        REQUIRE(r.read(1) == stream_state::ok);
        CHECK(r.complete == 10 * calls);
    }
    CHECK(r.is_all_there());
}

TEST_CASE("frame reader: a message that waits stays, is asked for at each read, and lands when it may") {
    std::vector<message> const messages{{50}, {20'000}};
    reader r(messages);
    r.waits = true;
    r.give(wire(messages));
    for (int i = 1; i <= 3; ++i) {
        REQUIRE(r.read() == stream_state::ok);
        CHECK(r.in.is_blocked());
        CHECK(r.asked == i);
    }
    r.waits = false;
    REQUIRE(r.read() == stream_state::ok);
    CHECK_FALSE(r.in.is_blocked());
    CHECK(r.is_all_there());
}

TEST_CASE("frame reader: what ends it comes behind what was sent before") {
    for (std::size_t const sound : {0u, 1u, 3u}) {
        std::vector<message> const messages(sound, {100});
        bytes const all = wire(messages);
        bytes const next = wire(std::vector<message>{{100}});
        reader junk(messages);
        junk.give(all);
        junk.give(bytes(200, std::byte{'G'}));
        CHECK(junk.read() == stream_state::junk);
        CHECK(junk.is_all_there()); // no landing was asked for junk

        reader closed(messages);
        closed.give(all);
        closed.give(std::span(next).first(60));
        closed.due.push_back({100});
        closed.sockets.a = descriptor();
        REQUIRE(closed.read() == stream_state::ok);
        CHECK(closed.read() == stream_state::closed);
        CHECK(closed.complete == sound);

        reader failed(messages);
        failed.give(all);
        if (sound > 0) REQUIRE(failed.read() == stream_state::ok);
        CHECK(failed.is_all_there());
        failed.sockets.b = descriptor(); // as an owner does that gives up while it reads
        CHECK(failed.read() == stream_state::failed);
        CHECK(errno == EBADF);
    }
}

} // namespace net_frame_stream_test
