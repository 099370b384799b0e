// herring: tests of kernel/copies.hpp: each is a copy, at any size and alignment, and writes nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/copies.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include <sys/mman.h>

using namespace herring;

TEST_CASE("stream_copy: every size and alignment, and not a byte beside them") {
    std::vector<std::byte> from(1024), to(1024);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    std::size_t wrong = 0, copies = 0;
    for (std::size_t target = 32; target < 32 + 18; ++target)
        for (std::size_t source = 0; source < 3; ++source)
            for (std::size_t bytes : {0u, 1u, 15u, 16u, 63u, 64u, 65u, 127u, 128u, 200u, 513u}) {
                to.assign(to.size(), std::byte{0xee});
                kernel::stream_copy(to.data() + target, from.data() + source, bytes);
                for (std::size_t i = 0; i < to.size(); ++i) {
                    bool const copied = i >= target && i < target + bytes;
                    wrong += to[i] != (copied ? from[source + i - target] : std::byte{0xee});
                }
                ++copies;
            }
    CHECK(copies == 18 * 3 * 11);
    CHECK(wrong == 0);
}

TEST_CASE("stream_copy: who sees a later release sees what was copied") {
    constexpr std::size_t bytes = 4096;
    alignas(64) static std::byte shared[bytes];
    std::atomic<int> turn{0};
    std::size_t wrong = 0;
    std::thread reader([&] {
        for (int round = 1; round <= 200; ++round) {
            while (turn.load(std::memory_order_acquire) != 2 * round - 1) std::this_thread::yield();
            for (std::byte const b : shared) wrong += b != static_cast<std::byte>(round);
            turn.store(2 * round, std::memory_order_release);
        }
    });
    std::vector<std::byte> own(bytes);
    for (int round = 1; round <= 200; ++round) {
        while (turn.load(std::memory_order_acquire) != 2 * (round - 1)) std::this_thread::yield();
        own.assign(bytes, static_cast<std::byte>(round));
        kernel::stream_copy(shared, own.data(), bytes);
        turn.store(2 * round - 1, std::memory_order_release);
    }
    reader.join();
    CHECK(wrong == 0);
}

TEST_CASE("fetch_copy: every size and alignment, and not a byte beside them") {
    std::vector<std::byte> source(4096), next(4096), from(4096), to(4096);
    for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = static_cast<std::byte>(i * 7 + 1);
        next[i] = static_cast<std::byte>(i * 5 + 3);
    }
    std::size_t wrong = 0, copies = 0;
    for (bool const streams : {false, true})
        for (std::size_t target : {0u, 4u, 60u, 64u, 68u})
            for (std::size_t bytes : {0u, 4u, 63u, 64u, 255u, 256u, 257u, 320u, 1024u, 1400u, 2900u})
                for (std::size_t less : {0u, 1u, 64u, 256u, 300u, 2900u}) {
                    std::size_t const left = bytes > less ? bytes - less : 0;
                    from = source;
                    to.assign(to.size(), std::byte{0xee});
                    kernel::fetch_copy(to.data() + target, from.data() + 64, bytes, streams,
                                       std::span<std::byte const>(next.data(), left));
                    for (std::size_t i = 0; i < to.size(); ++i) {
                        bool const copied = i >= target && i < target + bytes;
                        wrong += to[i] != (copied ? source[64 + i - target] : std::byte{0xee});
                        bool const replaced = i >= 64 && i < 64 + left;
                        wrong += from[i] != (replaced ? next[i - 64] : source[i]);
                    }
                    ++copies;
                }
    CHECK(copies == 2 * 5 * 11 * 6);
    CHECK(wrong == 0);
}

TEST_CASE("claim_lines: every size up to where memory ends, and no byte changes") {
    constexpr std::size_t page = 4096;
    void* const mapped =
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    auto* const memory = static_cast<std::byte*>(mapped);
    REQUIRE(::mprotect(memory + page, page, PROT_NONE) == 0); // a byte too far is a signal
    for (std::size_t i = 0; i < page; ++i) memory[i] = static_cast<std::byte>(i * 7 + 1);
    std::vector<std::byte> const before(memory, memory + page);
    for (std::size_t const bytes : {0u, 1u, 63u, 64u, 65u, 127u, 128u, 1000u, 4096u})
        kernel::claim_lines(memory + page - bytes, bytes);
    CHECK(std::vector<std::byte>(memory, memory + page) == before);
    CHECK(::munmap(mapped, 2 * page) == 0);
}
