// herring: tests of transport/sealed/keys.hpp: whose key is whose, how many messages it seals, and what follows from it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/keys.hpp"

#include "herring/launch.hpp"
#include "herring/world.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

using namespace herring;
using detail::sealed_nonce;

namespace {
std::vector<std::byte> bytes(detail::secret_key const& key) {
    return {key.bytes().begin(), key.bytes().end()};
}
sealed_nonce nonce(unsigned value) {
    sealed_nonce made{};
    made[31] = static_cast<std::byte>(value);
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
