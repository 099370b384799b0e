// herring: tests of ensemble/data_frames.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/data_frames.hpp"

#include "doctest/doctest.h"

#include "herring/machine/descriptor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <sys/socket.h>

namespace ensemble_frame_receiver_test {

using namespace herring::detail::ensembles;
using herring::detail::descriptor;

std::vector<std::byte> payload(std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> out(bytes);
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
    return out;
}
void add(std::vector<std::byte>& to, std::uint64_t id, std::vector<std::byte> const& bytes) {
    std::byte front[data_head_bytes];
    encode({.kind = data_kind::row, .id = id, .bytes = static_cast<std::uint32_t>(bytes.size())}, front);
    to.insert(to.end(), front, front + data_head_bytes);
    to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Takes messages into memory of its own; skips ids from 1000 on, refuses 2000.
struct reader {
    descriptor to, from;
    frame_receiver receiver;
    std::vector<std::byte> landing_place = std::vector<std::byte>(1 << 20);
    std::map<std::uint64_t, std::vector<std::byte>> got;
    std::vector<std::uint64_t> order, skipped;

    explicit reader(std::size_t typical) : receiver(typical) {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
        to = descriptor(both[0]);
        from = descriptor(both[1]);
    }
    receive_state read(std::size_t most = 1 << 20) {
        return receiver.read(
            from.get(), most,
            [&](data_head const& head) -> landing {
                if (head.id >= 2000) return {};
                if (head.id >= 1000) {
                    skipped.push_back(head.id);
                    return {landing::action::skip};
                }
                return {landing::action::land, landing_place.data()};
            },
            [&](data_head const& head) {
                got[head.id].assign(landing_place.begin(), landing_place.begin() + head.bytes);
                order.push_back(head.id);
            });
    }
    void give(std::span<std::byte const> bytes) {
        while (!bytes.empty()) {
            ssize_t const sent = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
            if (!bytes.empty()) REQUIRE(read() == receive_state::ok);
        }
    }
};

TEST_CASE("ensemble frame receiver: messages cut anywhere come whole and in order") {
    for (std::size_t const typical : {std::size_t{100}, std::size_t{100000}})
        for (std::size_t const piece : {1u, 7u, 31u, 32u, 33u, 1000u, 4096u, 70000u, 1u << 20}) {
            std::vector<std::byte> all;
            std::map<std::uint64_t, std::vector<std::byte>> expected;
            std::uint64_t id = 0;
            for (std::size_t const bytes :
                 {0u, 1u, 31u, 32u, 100u, 0u, 4064u, 5000u, 0u, 3u, 70000u, 2u, 140000u, 9u})
                if (piece > 100 || bytes < 5000) {
                    ++id;
                    add(all, id, expected[id] = payload(bytes, id));
                    add(all, 1000 + id, payload(bytes / 2, id)); // skipped
                }
            reader in(typical);
            std::span<std::byte const> rest(all);
            while (!rest.empty()) {
                std::size_t const part = std::min(piece, rest.size());
                in.give(rest.first(part));
                rest = rest.subspan(part);
                REQUIRE(in.read() == receive_state::ok);
            }
            CHECK(in.got == expected);
            REQUIRE(in.order.size() == id);
            CHECK(std::is_sorted(in.order.begin(), in.order.end()));
            CHECK(in.skipped.size() == id);
        }
}

TEST_CASE("ensemble frame receiver: one look reads no more than it may") {
    reader in(100);
    std::vector<std::byte> all;
    for (std::uint64_t id = 1; id <= 30; ++id) add(all, id, payload(4000, id));
    ssize_t const sent = ::send(in.to.get(), all.data(), all.size(), MSG_NOSIGNAL);
    REQUIRE(sent == static_cast<ssize_t>(all.size()));
    REQUIRE(in.read(1) == receive_state::ok);
    CHECK(in.order.size() >= 1);
    CHECK(in.order.size() <= 17); // a staging buffer of 64 KiB
    while (in.order.size() < 30) REQUIRE(in.read(1) == receive_state::ok);
}

TEST_CASE("ensemble frame receiver: what ends it") {
    SUBCASE("the other end has closed: what it sent before comes first") {
        reader in(100);
        std::vector<std::byte> all;
        add(all, 1, payload(50, 1));
        add(all, 2, payload(50, 2));
        all.resize(all.size() - 1);
        in.give(all);
        in.to = descriptor();
        receive_state state = in.read();
        if (state == receive_state::ok) state = in.read();
        CHECK(state == receive_state::closed);
        CHECK(in.order == std::vector<std::uint64_t>{1});
    }
    SUBCASE("bytes that are no head") {
        reader in(100);
        std::vector<std::byte> all;
        add(all, 1, payload(50, 1));
        all.resize(all.size() + data_head_bytes, std::byte{'x'});
        in.give(all);
        CHECK(in.read() == receive_state::no_head);
        CHECK(in.order == std::vector<std::uint64_t>{1});
    }
    SUBCASE("a message that is refused") {
        reader in(100);
        std::vector<std::byte> all;
        add(all, 2000, payload(50, 1));
        in.give(all);
        CHECK(in.read() == receive_state::refused);
    }
}

} // namespace ensemble_frame_receiver_test
