// herring: tests of transport/tcp/link.hpp over a socket pair: split reads, junk, impossible lengths.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/link.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

using herring::detail::descriptor;
using herring::detail::frame;
using herring::detail::frame_bytes;
using herring::detail::stream_state;
using herring::detail::tcp_reader;

namespace {

struct pair {
    descriptor a, b;
    pair() {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both) == 0);
        a = descriptor(both[0]);
        b = descriptor(both[1]);
    }
};

std::vector<std::byte> payload(std::uint64_t tag, std::size_t length) {
    std::vector<std::byte> made(length);
    for (std::size_t i = 0; i < length; ++i)
        made[i] = static_cast<std::byte>((tag * 37 + i * 11 + i / 251) & 0xff);
    return made;
}

/// The envelope of a message.
std::vector<std::byte> envelope(std::uint64_t tag, std::size_t length) { return payload(tag + 100, length); }

/// A message as it lies on the wire.
std::vector<std::byte> wire(std::uint64_t tag, std::size_t length, std::size_t beside = 0) {
    std::vector<std::byte> made(frame_bytes);
    herring::detail::encode(
        {.job = 5, .tag = tag, .length = length, .source = 1, .envelope = static_cast<std::uint32_t>(beside)},
        made.data());
    auto const head = envelope(tag, beside);
    made.insert(made.end(), head.begin(), head.end());
    auto const body = payload(tag, length);
    made.insert(made.end(), body.begin(), body.end());
    return made;
}

/// Takes in what a link reads, in memory of the exact size, so that a sanitizer sees who writes past it.
struct taker {
    std::vector<std::uint64_t> tags;
    std::vector<std::unique_ptr<std::byte[]>> memory;
    std::vector<std::size_t> lengths;
    std::vector<std::vector<std::byte>> envelopes;
    std::size_t complete = 0;
    bool refuse = false;
    int asked = 0;

    stream_state read(pair const& s, tcp_reader& link, int calls = 4) {
        return link.read(
            s.b, calls,
            [&](frame const& header, std::span<std::byte const> beside) noexcept -> std::byte* {
                ++asked;
                if (refuse) return nullptr;
                CHECK(complete == tags.size()); // the one before is whole
                tags.push_back(header.tag);
                lengths.push_back(header.length);
                envelopes.emplace_back(beside.begin(), beside.end());
                memory.push_back(std::make_unique<std::byte[]>(header.length));
                return memory.back().get();
            },
            [&]() noexcept { ++complete; });
    }
    bool right(std::size_t i, std::uint64_t tag, std::size_t length) const {
        if (i >= complete || tags[i] != tag || lengths[i] != length) return false;
        auto const due = payload(tag, length);
        return length == 0 || std::memcmp(memory[i].get(), due.data(), length) == 0;
    }
};

void put_all(descriptor const& socket, std::span<std::byte const> bytes) {
    REQUIRE(::write(socket.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

} // namespace

TEST_CASE("tcp_link: three messages, cut at every byte into two reads") {
    std::vector<std::byte> all;
    std::vector<std::size_t> const lengths{5, 0, 100};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        auto const one = wire(i + 1, lengths[i]);
        all.insert(all.end(), one.begin(), one.end());
    }
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
        pair s;
        tcp_reader link;
        taker got;
        put_all(s.a, std::span(all).first(cut));
        REQUIRE(got.read(s, link) == stream_state::ok);
        put_all(s.a, std::span(all).subspan(cut));
        REQUIRE(got.read(s, link) == stream_state::ok);
        REQUIRE(got.complete == 3);
        for (std::size_t i = 0; i < 3; ++i) CHECK(got.right(i, i + 1, lengths[i]));
        CHECK_FALSE(link.blocked());
    }
}

TEST_CASE("tcp_link: byte by byte") {
    pair s;
    tcp_reader link;
    taker got;
    for (std::uint64_t tag = 1; tag <= 3; ++tag)
        for (std::byte const b : wire(tag, 20 * tag)) {
            put_all(s.a, std::span(&b, 1));
            REQUIRE(got.read(s, link) == stream_state::ok);
        }
    for (std::size_t i = 0; i < 3; ++i) CHECK(got.right(i, i + 1, 20 * (i + 1)));
}

TEST_CASE("tcp_link: sizes around what is read along with a header, in pieces of many sizes") {
    std::size_t const inline_bytes = tcp_reader::inline_bytes;
    std::vector<std::size_t> const lengths{inline_bytes - 49,
                                           inline_bytes - 48,
                                           inline_bytes - 1,
                                           0,
                                           inline_bytes,
                                           inline_bytes + 1,
                                           1,
                                           3 * inline_bytes,
                                           47,
                                           48,
                                           49,
                                           2 * inline_bytes + 17,
                                           0,
                                           0,
                                           10'000};
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        auto const one = wire(i, lengths[i]);
        all.insert(all.end(), one.begin(), one.end());
    }
    for (std::size_t const piece : {1000u, 4096u, 4143u, 4144u, 4145u, 7777u, 60'000u})
        for (int const calls : {1, 4}) {
            pair s;
            tcp_reader link;
            taker got;
            for (std::size_t at = 0; at < all.size(); at += piece) {
                put_all(s.a, std::span(all).subspan(at, std::min(piece, all.size() - at)));
                REQUIRE(got.read(s, link, calls) == stream_state::ok);
            }
            for (int i = 0; i < 50 && got.complete < lengths.size(); ++i)
                REQUIRE(got.read(s, link, calls) == stream_state::ok);
            REQUIRE(got.complete == lengths.size());
            for (std::size_t i = 0; i < lengths.size(); ++i) CHECK(got.right(i, i, lengths[i]));
        }
}

TEST_CASE("tcp_link: junk is junk, at the first header and at a later one") {
    for (std::size_t const sound : {0u, 1u, 3u}) {
        pair s;
        tcp_reader link;
        taker got;
        for (std::size_t i = 0; i < sound; ++i) put_all(s.a, wire(i, 100));
        std::vector<std::byte> junk = wire(9, 10);
        junk[30] ^= std::byte{1};
        put_all(s.a, junk);
        CHECK(got.read(s, link) == stream_state::junk);
        CHECK(got.complete == sound);
        CHECK(got.tags.size() == sound); // nobody was asked where junk shall go
    }
    pair s;
    tcp_reader link;
    taker got;
    std::string const other(200, 'G');
    put_all(s.a, std::as_bytes(std::span(other)));
    CHECK(got.read(s, link) == stream_state::junk);
    CHECK(got.asked == 0);
}

TEST_CASE("tcp_link: envelopes, cut at every byte into two reads") {
    std::vector<std::byte> all;
    struct message {
        std::size_t length, beside;
    };
    std::vector<message> const messages{{5, 12}, {0, 32}, {100, 0}, {0, 1}, {5000, 24}};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        auto const one = wire(i + 1, messages[i].length, messages[i].beside);
        all.insert(all.end(), one.begin(), one.end());
    }
    for (std::size_t cut = 0; cut <= all.size(); cut += cut < 420 ? 1 : 97) {
        pair s;
        tcp_reader link;
        taker got;
        put_all(s.a, std::span(all).first(cut));
        for (int i = 0; i < 5; ++i) REQUIRE(got.read(s, link) == stream_state::ok);
        put_all(s.a, std::span(all).subspan(cut));
        for (int i = 0; i < 5; ++i) REQUIRE(got.read(s, link) == stream_state::ok);
        REQUIRE(got.complete == messages.size());
        for (std::size_t i = 0; i < messages.size(); ++i) {
            CHECK(got.right(i, i + 1, messages[i].length));
            CHECK(got.envelopes[i] == envelope(i + 1, messages[i].beside));
        }
    }
}

TEST_CASE("tcp_link: an impossible length is for the owner to refuse, before anything is allocated or read") {
    pair s;
    tcp_reader link;
    std::vector<std::byte> header(frame_bytes);
    herring::detail::encode({.tag = 1, .length = ~std::uint64_t{0}}, header.data());
    put_all(s.a, header);
    std::uint64_t seen = 0;
    CHECK(link.read(
              s.b, 4,
              [&](frame const& f, std::span<std::byte const>) noexcept -> std::byte* {
                  seen = f.length;
                  return nullptr;
              },
              [] {}) == stream_state::ok);
    CHECK(seen == ~std::uint64_t{0});
    CHECK(link.blocked());
}

TEST_CASE("tcp_link: not now: the message stays, is asked for at each read, and comes when there is room") {
    pair s;
    tcp_reader link;
    taker got;
    got.refuse = true;
    put_all(s.a, wire(1, 50));
    put_all(s.a, wire(2, 20'000));
    for (int i = 1; i <= 3; ++i) {
        REQUIRE(got.read(s, link) == stream_state::ok);
        CHECK(link.blocked());
        CHECK(got.asked == i);
    }
    got.refuse = false;
    for (int i = 0; i < 20 && got.complete < 2; ++i) REQUIRE(got.read(s, link) == stream_state::ok);
    CHECK_FALSE(link.blocked());
    CHECK(got.right(0, 1, 50));
    CHECK(got.right(1, 2, 20'000));
}

TEST_CASE("tcp_link: the other end closes: what came before is read first") {
    pair s;
    tcp_reader link;
    taker got;
    put_all(s.a, wire(1, 50));
    auto const second = wire(2, 50);
    put_all(s.a, std::span(second).first(60)); // and half a message
    s.a = descriptor();
    stream_state state = got.read(s, link);
    if (state == stream_state::ok) state = got.read(s, link);
    CHECK(state == stream_state::closed);
    CHECK(got.complete == 1);
    CHECK(got.right(0, 1, 50));
}
