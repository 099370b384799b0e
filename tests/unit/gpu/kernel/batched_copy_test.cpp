// herring: batched copies, run by the host: every byte of the list, at any size and alignment, by any number of threads, and no other.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernel/batched_copy.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
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

TEST_CASE("batched_copy: from any address to any, short and long: as memcpy, and no byte beside it") {
    constexpr std::size_t guard = 64, most = 2 * copy_chunk_bytes + 17;
    std::vector<unsigned char> to(most + access_bytes + 2 * guard), want(to.size());
    REQUIRE(detail::address(to.data()) % access_bytes == 0);
    for (std::size_t const bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{17}, std::size_t{31},
          std::size_t{32}, std::size_t{33}, std::size_t{47}, std::size_t{48}, std::size_t{65},
          std::size_t{1000}, copy_chunk_bytes - 1, copy_chunk_bytes, copy_chunk_bytes + 1, most})
        for (std::size_t source = 0; source < access_bytes; ++source) {
            std::vector<unsigned char> from(source + bytes); // AddressSanitizer sees what is read behind it
            REQUIRE(detail::address(from.data()) % access_bytes == 0);
            for (std::size_t i = 0; i < from.size(); ++i)
                from[i] = static_cast<unsigned char>(i * 7 + i / 256);
            for (std::size_t target = 0; target < access_bytes; ++target)
                for (std::size_t const threads : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
                    if (bytes > 1000 && threads != 64) continue; // for time
                    CAPTURE(bytes);
                    CAPTURE(source);
                    CAPTURE(target);
                    CAPTURE(threads);
                    std::size_t const room = guard + target + bytes + guard;
                    std::memset(to.data(), 0x11, room);
                    std::memset(want.data(), 0x11, room);
                    if (bytes > 0) std::memcpy(want.data() + guard + target, from.data() + source, bytes);
                    copies one;
                    one.add(to.data() + guard + target, from.data() + source, bytes);
                    one.run(threads);
                    REQUIRE(std::memcmp(to.data(), want.data(), room) == 0);
                }
        }
}

TEST_CASE("batched_copy: vectors are stored on boundaries, read within the source, and few bytes go singly") {
    std::vector<std::byte> memory(512), into(512);
    int wrong = 0;
    for (std::size_t source = 0; source < access_bytes; ++source)
        for (std::size_t target = 0; target < access_bytes; ++target)
            for (std::size_t bytes = 0; bytes < 100; ++bytes)
                for (std::size_t const before : {0u, 1u, 15u, 16u})
                    for (std::size_t const behind : {0u, 1u, 15u, 16u}) {
                        std::byte* const to = into.data() + target;
                        std::byte const* const from = memory.data() + 64 + source;
                        std::byte const *const begin = from - before, *const end = from + bytes + behind;
                        auto const cut = detail::vectors_of_copy::of(to, from, bytes, begin, end);
                        std::size_t const tail = bytes - cut.head - cut.vectors * access_bytes;
                        // A vector that is made of two, of a part whose source goes on, has both of them.
                        std::size_t const singly = before >= 16 && behind >= 16 ? 16 : 32;
                        bool right = cut.head <= bytes && tail <= bytes;
                        if (cut.vectors == 0) {
                            right = right && bytes < 2 * singly;
                        } else {
                            std::byte const* const first = from + cut.head - cut.shift;
                            std::size_t const reads = cut.vectors + (cut.shift != 0 ? 1 : 0);
                            right = right && cut.head < singly && tail < singly && cut.shift < access_bytes &&
                                    detail::address(to + cut.head) % access_bytes == 0 &&
                                    detail::address(first) % access_bytes == 0 && first >= begin &&
                                    first + reads * access_bytes <= end;
                        }
                        if (!right) ++wrong;
                    }
    CHECK(wrong == 0);
}

TEST_CASE("batched_copy: chunks of an empty copy, of one byte, of a whole chunk and more") {
    alignas(access_bytes) static std::byte to[access_bytes];
    CHECK(copy_chunks(to, 0) == 0);
    CHECK(copy_chunks(to, 1) == 1);
    CHECK(copy_chunks(to, copy_chunk_bytes) == 1);
    CHECK(copy_chunks(to, copy_chunk_bytes + 1) == 2);
    // Off a boundary the first chunk ends on one.
    CHECK(copy_chunks(to + 3, 0) == 0);
    CHECK(copy_chunks(to + 3, copy_chunk_bytes - 3) == 1);
    CHECK(copy_chunks(to + 3, copy_chunk_bytes - 2) == 2);
    static_assert(copy_chunk_bytes % access_bytes == 0); // so that all but the first begin on a boundary
}
