// herring: tests of transport/sealed/keys.hpp: whose key is whose, how many messages it seals, and what follows from it; nonces that all ranks know.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/keys.hpp"

#include "herring/control/alone.hpp"
#include "herring/launch.hpp"
#include "herring/world.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace herring;
using detail::sealed_nonce;
using detail::sealed_set_up;

namespace {
std::vector<std::byte> bytes(detail::secret_key const& key) {
    return {key.bytes().begin(), key.bytes().end()};
}
sealed_nonce nonce(unsigned value) {
    sealed_nonce made{};
    made[31] = static_cast<std::byte>(value);
    return made;
}
transport_needs needs_of(std::vector<int> const& peers) {
    return {.peers = peers, .receives_per_peer = 4, .sends_per_peer = 4, .largest_message = 1000};
}
std::vector<int> others(world const& w) {
    std::vector<int> made;
    for (int r = 0; r < w.size(); ++r)
        if (r != w.rank()) made.push_back(r);
    return made;
}
} // namespace

TEST_CASE("sealed_keys: a direction's key is the same on both ends, and no other's") {
    std::vector<world> ranks = thread_worlds(3);
    std::vector<world> others = thread_worlds(3);
    auto const key = [](world const& w, int sender, int receiver, unsigned a = 1, unsigned b = 2) {
        return bytes(detail::first_sealed_key(w, sender, receiver, nonce(a), nonce(b)));
    };
    CHECK(key(ranks[0], 0, 1) == key(ranks[1], 0, 1));
    CHECK(key(ranks[0], 1, 0) == key(ranks[1], 1, 0));
    CHECK(key(ranks[2], 1, 2) == key(ranks[1], 1, 2));
    std::vector<std::vector<std::byte>> const all{key(ranks[0], 0, 1),       key(ranks[0], 1, 0, 2, 1),
                                                  key(ranks[0], 0, 1, 1, 3), key(ranks[0], 0, 1, 3, 2),
                                                  key(ranks[0], 0, 1, 2, 1), key(ranks[0], 0, 2),
                                                  key(ranks[1], 1, 2),       key(others[0], 0, 1)};
    CHECK(std::set(all.begin(), all.end()).size() == all.size());
}

TEST_CASE("sealed_keys: each key follows from the one before, and all differ") {
    std::set<std::vector<std::byte>> seen;
    detail::secret_key first;
    detail::sealed_key_chain one{detail::secret_key(first.bytes())}, two{detail::secret_key(first.bytes())};
    seen.insert(bytes(first));
    for (std::uint64_t i = 0; i < 100; ++i) {
        CHECK(one.generation() == i);
        CHECK(bytes(one.key()) == bytes(two.key()));
        CHECK(seen.insert(bytes(one.key())).second);
        one.advance();
        two.advance();
    }
}

TEST_CASE("sealed_keys: a key seals at most 2^32 blocks, but as many messages as can be under way") {
    static_assert(detail::sealed_generation_bits(0, 512) == 29);
    static_assert(detail::sealed_generation_bits(64 << 10, 512) == 19);
    static_assert(detail::sealed_generation_bits(64 << 20, 512) == 9);
    static_assert(detail::sealed_generation_bits(64 << 20, 4096) == 12);
    for (std::size_t largest = 0; largest <= 64 << 20; largest = largest * 3 + 1) {
        int const bits = detail::sealed_generation_bits(largest, 512);
        std::uint64_t const blocks = (largest + 15) / 16 + 5;
        CHECK((blocks << bits) <= std::uint64_t{1} << 32);
        CHECK((blocks << (bits + 1)) > std::uint64_t{1} << 32);
    }
}

TEST_CASE("sealed_set_up: both ends of a direction have its key; two transports of one world share none") {
    std::mutex guard;
    std::multiset<std::vector<std::byte>> all;
    launch_threads(3, [&](world& w) {
        std::vector<int> const peers = others(w);
        sealed_set_up const one(w, needs_of(peers)), two(w, needs_of(peers));
        std::lock_guard const lock(guard);
        for (int const peer : peers)
            for (sealed_set_up const* const of : {&one, &two}) {
                all.insert(bytes(of->key(w.rank(), peer)));
                all.insert(bytes(of->key(peer, w.rank())));
            }
    });
    CHECK(all.size() == 24);
    for (auto const& key : all) CHECK(all.count(key) == 2);
    CHECK(std::set(all.begin(), all.end()).size() == 12);
}

TEST_CASE("sealed_set_up: a rank that makes another call is named") {
    std::atomic<int> told{0};
    launch_threads(2, [&](world& w) {
        std::vector<int> const peers = others(w);
        std::vector<std::byte> const short_word(3), word_of_same_size(48);
        try {
            if (w.rank() == 0)
                sealed_set_up(w, needs_of(peers));
            else
                w.all_gather(word_of_same_size);
        } catch (error const& why) {
            told += why.code() == errc::mismatch && why.peer() == 1 &&
                    std::string(why.what()).find("another call") != std::string::npos;
        }
    });
    CHECK(told == 1);
}

TEST_CASE("sealed_set_up: without peers nobody is asked; without a secret nothing is made") {
    world alone;
    sealed_set_up const none(alone, {});
    detail::membership open;
    open.control = detail::control_alone::make();
    world bare(std::move(open));
    CHECK_THROWS_AS(sealed_set_up(bare, {}), error);
}

// More than any machine has: told before a byte of it is touched.
TEST_CASE("sealed_set_up: memory that is not there is refused on all ranks") {
    std::atomic<int> told{0};
    launch_threads(2, [&](world& w) {
        std::vector<int> const peers = others(w);
        transport_needs needs = needs_of(peers);
        if (w.rank() == 0) needs.largest_message = std::size_t{1} << 45;
        try {
            sealed_set_up(w, needs);
        } catch (error const& why) {
            told += why.code() == (w.rank() == 0 ? errc::no_resources : errc::peer_failed);
        }
    });
    CHECK(told == 2);
}
