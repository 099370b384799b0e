// herring: tests of transport/sealed/channel.hpp: what opens, what does not, and under how many keys.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/channel.hpp"

#include "herring/base/bytes.hpp"
#include "herring/crypto/secret_key.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <span>
#include <utility>
#include <vector>

using namespace herring::detail;

namespace {

secret_key key_with(unsigned first) {
    secret_key made;
    made.bytes()[0] = static_cast<std::byte>(first);
    return made;
}

struct message {
    std::uint64_t tag = 0;
    std::vector<std::byte> data;
    sealed_envelope::buffer envelope{};
};

constexpr int rank_of_sender = 3, rank_of_receiver = 1;

struct direction {
    explicit direction(int bits = 9, unsigned key_of_receiver = 5, std::size_t receives = 8)
        : seals({rank_of_sender, rank_of_receiver, bits}, key_with(5), 3),
          opens({rank_of_sender, rank_of_receiver, bits}, key_with(key_of_receiver), receives, 1) {}

    static std::vector<std::byte> plain(std::uint64_t tag) {
        std::vector<std::byte> made(1 + tag % 50);
        for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(tag + i);
        return made;
    }
    message next(std::uint64_t tag) {
        message made{tag, plain(tag)};
        std::vector<std::byte> const from = made.data;
        REQUIRE(seals.seal(tag, from, made.data.data(), made.envelope.data()));
        return made;
    }
    opened take(message one) {
        opened const result = opens.open(one.tag, one.envelope, one.data);
        if (result == opened::fresh) CHECK(one.data == plain(one.tag));
        return result;
    }

    sealer seals;
    opener opens;
};

opened changed_by(auto const& change) {
    direction d;
    message one = d.next(77);
    change(one, d);
    return d.opens.open(one.tag, one.envelope, one.data);
}

} // namespace

TEST_CASE("sealed_channel: messages open once, in any order") {
    direction d;
    std::vector<message> all;
    for (std::uint64_t i = 0; i < 30; ++i) all.push_back(d.next(i * 1000));
    for (std::size_t const at : {3u, 0u, 29u, 1u, 2u, 17u}) {
        CHECK_FALSE(d.opens.seen(all[at].envelope));
        CHECK(d.take(all[at]) == opened::fresh);
        CHECK(d.opens.seen(all[at].envelope));
        CHECK(d.take(all[at]) == opened::repeated);
    }
    CHECK(d.seals.sealed() == 30);
}

TEST_CASE("sealed_channel: what is not what was sealed does not open") {
    CHECK(changed_by([](message&, direction&) {}) == opened::fresh);
    CHECK(changed_by([](message& m, direction&) { m.data[0] ^= std::byte{1}; }) == opened::changed);
    CHECK(changed_by([](message& m, direction&) { m.data.pop_back(); }) == opened::changed);
    CHECK(changed_by([](message& m, direction&) { m.data.clear(); }) == opened::changed);
    CHECK(changed_by([](message& m, direction&) { m.tag ^= 1; }) == opened::changed);
    CHECK(changed_by([](message& m, direction&) { m.tag ^= std::uint64_t{1} << 40; }) == opened::changed);
    for (std::size_t bit = 0; bit < 24 * 8; ++bit)
        CHECK(changed_by([&](message& m, direction&) {
                  m.envelope[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
              }) == opened::changed);
    // Two messages that change their payloads, or their tags.
    CHECK(changed_by([](message& m, direction& d) { m.data = d.next(77).data; }) == opened::changed);
    CHECK(changed_by([](message& m, direction& d) { m.envelope = d.next(77).envelope; }) == opened::changed);
    message const one = direction().next(7);
    direction other;
    CHECK(other.opens.open(7, std::span(one.envelope).first(23), std::span<std::byte>()) == opened::changed);
    CHECK_FALSE(other.opens.seen(std::span(one.envelope).first(23)));
}

TEST_CASE("sealed_channel: another key, other ranks, the other direction, another epoch") {
    direction const own;
    CHECK(direction(9, 6).take(direction().next(7)) == opened::changed);
    message const one = direction().next(7);
    auto const opened_by = [&](sealed_route const& route) {
        opener by(route, key_with(5), 8, 1);
        message copy = one;
        return by.open(copy.tag, copy.envelope, copy.data);
    };
    CHECK(opened_by({rank_of_sender, rank_of_receiver, 9}) == opened::fresh);
    CHECK(opened_by({rank_of_receiver, rank_of_sender, 9}) == opened::changed);
    CHECK(opened_by({4, rank_of_receiver, 9}) == opened::changed);
    CHECK(opened_by({rank_of_sender, 2, 9}) == opened::changed);
    CHECK(opened_by({rank_of_sender, rank_of_receiver, 9, 1}) == opened::changed);
}

TEST_CASE("sealed_channel: keys follow each other, late messages of the one before open, older ones do not") {
    direction d(9, 5, 128); // 512 messages a key
    std::vector<message> all;
    for (std::uint64_t i = 0; i < 3000; ++i) all.push_back(d.next(i));
    // Of each generation the last three come after the next one has begun.
    auto const late = [](std::size_t i) { return i % 512 >= 509; };
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!late(i)) REQUIRE(d.take(all[i]) == opened::fresh);
        if (i % 512 == 100 && i > 512)
            for (std::size_t j = i - 100 - 3; j < i - 100; ++j) {
                REQUIRE(d.take(all[j]) == opened::fresh);
                REQUIRE(d.take(all[j]) == opened::repeated);
            }
    }
    CHECK(d.take(all[5]) == opened::repeated); // its key is gone, and it has come
    CHECK(d.take(d.next(1)) == opened::fresh);

    direction two(9, 5, 128);
    message const first = two.next(0);
    for (std::uint64_t i = 1; i <= 1024; ++i) REQUIRE(two.take(two.next(i)) == opened::fresh);
    CHECK(two.take(first) == opened::changed); // it may be genuine, and nobody can tell
}

TEST_CASE("sealed_channel: a number that is far ahead leads nowhere") {
    direction d;
    message one = d.next(1);
    message forged = one;
    put(forged.envelope.data(), std::uint64_t{1} << 60);
    CHECK(d.take(forged) == opened::changed);
    CHECK(d.take(one) == opened::fresh);
}

TEST_CASE("sealed_channel: messages that are taken away are missed") {
    direction d(20);
    CHECK(d.take(d.next(0)) == opened::fresh);
    for (int i = 0; i < 512; ++i) d.next(1);
    CHECK(d.take(d.next(2)) == opened::missing);
}

TEST_CASE("sealed_channel: equal messages are sealed to different bytes, under every key") {
    direction d;
    std::set<std::vector<std::byte>> seen;
    std::array<std::byte, 32> const from{};
    for (int i = 0; i < 2000; ++i) {
        std::vector<std::byte> to(32);
        sealed_envelope::buffer envelope{};
        REQUIRE(d.seals.seal(1, from, to.data(), envelope.data()));
        CHECK(seen.insert(to).second);
    }
}
