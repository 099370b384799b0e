// herring: the copy past the caches is a copy, at any size and alignment, and writes nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/copies.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

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
