// herring: tests of ensemble/shared_ring.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/shared_ring.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>

namespace ensemble_shared_ring_test {

using herring::detail::ensembles::ring_cell;
using herring::detail::ensembles::ring_message;
using herring::detail::ensembles::ring_reader;
using herring::detail::ensembles::ring_writer;

TEST_CASE("shared_ring: messages come in order, also around its end") {
    auto const cells = std::make_unique<std::array<ring_cell, 4>>();
    ring_writer writer(cells->data(), 4, 77);
    ring_reader reader(cells->data(), 4, 77);
    CHECK_FALSE(reader.has_message());
    for (std::uint64_t n = 0; n < 50; ++n) {
        for (std::uint64_t i = 0; i < n % 5; ++i) {
            writer.fill({n, i, n * i, ~n});
            writer.publish();
        }
        for (std::uint64_t i = 0; i < n % 5; ++i) {
            REQUIRE(reader.has_message());
            CHECK(reader.take() == ring_message{n, i, n * i, ~n});
        }
        CHECK_FALSE(reader.has_message());
    }
    CHECK(reader.taken() == 100);
}

TEST_CASE("shared_ring: what is not published is not there") {
    auto const cells = std::make_unique<std::array<ring_cell, 2>>();
    ring_writer writer(cells->data(), 2, 1);
    ring_reader reader(cells->data(), 2, 1);
    for (int i = 0; i < 5; ++i) {
        writer.fill({1, 2, 3, 4});
        CHECK_FALSE(reader.has_message());
        writer.publish();
        CHECK(reader.take() == ring_message{1, 2, 3, 4});
    }
}

TEST_CASE("shared_ring: a reader takes nothing that was meant for another one, nor noise") {
    auto const cells = std::make_unique<std::array<ring_cell, 4>>();
    ring_writer before(cells->data(), 4, 1000);
    for (int i = 0; i < 3; ++i) {
        before.fill({9, 9, 9, 9});
        before.publish();
    }
    ring_reader reader(cells->data(), 4, 0x123456789abcdefull);
    CHECK_FALSE(reader.has_message());
    ring_writer writer(cells->data(), 4, 0x123456789abcdefull);
    writer.fill({1, 0, 0, 0});
    CHECK_FALSE(reader.has_message());
    writer.publish();
    CHECK(reader.take()[0] == 1);
    CHECK_FALSE(reader.has_message());

    std::mt19937_64 random(1);
    for (int i = 0; i < 10000; ++i) {
        for (ring_cell& cell : *cells) cell.sequence = random();
        CHECK_FALSE(reader.has_message());
    }
}

TEST_CASE("shared_ring: what was written before a message is published is there when it has come") {
    struct shared {
        std::array<ring_cell, 8> cells{};
        std::array<std::uint64_t, 8> rows{}; // plain memory: a race is the thread sanitizer's to find
        alignas(64) std::atomic<std::uint64_t> taken{0};
    };
    auto const memory = std::make_unique<shared>();
    constexpr std::uint64_t messages = 20000;
    std::thread other([&] {
        ring_writer writer(memory->cells.data(), 8, 5);
        for (std::uint64_t n = 0; n < messages; ++n) {
            while (n - memory->taken.load(std::memory_order_acquire) >= 8) std::this_thread::yield();
            memory->rows[n % 8] = n * 3;
            writer.fill({n, n + 1, n + 2, n + 3});
            writer.publish();
        }
    });
    ring_reader reader(memory->cells.data(), 8, 5);
    std::uint64_t wrong = 0;
    for (std::uint64_t n = 0; n < messages; ++n) {
        while (!reader.has_message()) std::this_thread::yield();
        wrong += reader.take() != ring_message{n, n + 1, n + 2, n + 3} || memory->rows[n % 8] != n * 3;
        memory->taken.store(n + 1, std::memory_order_release);
    }
    other.join();
    CHECK(wrong == 0);
}

} // namespace ensemble_shared_ring_test
