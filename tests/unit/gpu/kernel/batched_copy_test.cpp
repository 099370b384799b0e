// herring: batched copies, run by the host: every byte of the list, at any size and alignment, by any number of threads, and no other.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernel/batched_copy.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <random>
#include <vector>

using namespace herring::gpu;

namespace {

struct dice {
    std::mt19937_64 random;
    std::size_t below(std::size_t n) { return random() % n; }
};

struct copies {
    std::vector<copy_item> items;

    void add(unsigned char* to, unsigned char const* from, std::size_t bytes) {
        items.push_back({to, from, bytes});
    }
    void run(std::size_t threads) const {
        std::vector<listed_copy> list(items.size());
        write_list(list.data(), items);
        for (std::size_t chunk = list.empty() ? 0 : list.back().end_chunk; chunk-- > 0;)
            for (std::size_t thread = threads; thread-- > 0;)
                copy_chunk(list.data(), list.size(), chunk, thread, threads);
    }
};

} // namespace

TEST_CASE("batched_copy: random lists: every byte of the list, and no other") {
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
        CAPTURE(seed);
        dice roll{std::mt19937_64(seed)};
        constexpr std::size_t room = 400'000;
        std::vector<unsigned char> from(room), to(room, 0x11), want(room, 0x11);
        for (auto& byte : from) byte = static_cast<unsigned char>(roll.below(256));
        copies many;
        std::size_t at = 0, read = 0;
        for (std::size_t i = 1 + roll.below(20); i > 0; --i) {
            std::size_t const kind = roll.below(4);
            std::size_t const bytes = kind == 0 ? 0 : kind == 1 ? roll.below(100'000) : roll.below(300);
            at += roll.below(2) == 0 ? 16 - at % 16 : roll.below(20);
            read += roll.below(2) == 0 ? 16 - read % 16 : roll.below(20);
            if (at + bytes > room || read + bytes > room) break;
            many.add(to.data() + at, from.data() + read, bytes);
            for (std::size_t b = 0; b < bytes; ++b) want[at + b] = from[read + b];
            at += bytes, read += bytes;
        }
        many.run(1 + roll.below(600));
        CHECK(to == want);
    }
}

TEST_CASE("batched_copy: places a word, half a word and a byte apart") {
    for (std::size_t const apart : {0u, 8u, 4u, 2u, 1u, 3u, 6u, 12u})
        for (std::size_t const bytes : {std::size_t{1}, std::size_t{15}, std::size_t{4000}, copy_chunk_bytes,
                                        copy_chunk_bytes + 1, 2 * copy_chunk_bytes + 17}) {
            CAPTURE(apart);
            CAPTURE(bytes);
            std::vector<unsigned char> from(bytes + 64), to(bytes + 64, 0x11);
            for (std::size_t i = 0; i < from.size(); ++i)
                from[i] = static_cast<unsigned char>(i * 7 + i / 256);
            copies one;
            one.add(to.data() + 16 + apart, from.data() + 16, bytes);
            one.run(64);
            for (std::size_t i = 0; i < to.size(); ++i) {
                bool const inside = i >= 16 + apart && i < 16 + apart + bytes;
                REQUIRE(to[i] == (inside ? from[i - apart] : 0x11));
            }
        }
}

TEST_CASE("batched_copy: chunks of an empty copy, of one byte, of a whole chunk and more") {
    static_assert(copy_chunks(0) == 0 && copy_chunks(1) == 1);
    static_assert(copy_chunks(copy_chunk_bytes) == 1 && copy_chunks(copy_chunk_bytes + 1) == 2);
    CHECK(copy_chunk_bytes % 16 == 0); // so that all chunks of a copy are aligned as its first
}
