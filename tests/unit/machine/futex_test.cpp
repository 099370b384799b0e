// herring: tests of machine/futex.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/futex.hpp"

#include "doctest/doctest.h"

#include "herring/launch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>

#include <sys/mman.h>

using herring::detail::futex_wait;
using herring::detail::futex_wake;
using std::chrono::seconds;

TEST_CASE("futex: returns at once when the word is another, or no time is left") {
    std::atomic<std::uint32_t> word{5};
    futex_wait(word, 4, seconds(100));
    futex_wait(word, 5, seconds(0));
    futex_wait(word, 5, seconds(-100));
    futex_wait(word, 5, std::chrono::milliseconds(2)); // no one wakes: the time ends it
    CHECK(word.load() == 5);
}

TEST_CASE("futex: wakes threads and processes that sleep") {
    void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto& word = *::new (memory) std::atomic<std::uint32_t>(0);
    auto const pass = [&](herring::world& w) { // the word goes round: each rank sleeps until it is its turn
        std::uint32_t const size = static_cast<std::uint32_t>(w.size());
        std::uint32_t const me = static_cast<std::uint32_t>(w.rank());
        for (std::uint32_t round = 0; round < 200; ++round) {
            for (std::uint32_t now = word.load(); now != round * size + me; now = word.load())
                futex_wait(word, now, seconds(20));
            word.fetch_add(1);
            futex_wake(word);
        }
        return 0;
    };
    CHECK(herring::launch(3, pass) == 0);
    CHECK(word.load() == 600);
    word.store(0);
    CHECK(herring::launch_threads(3, pass) == 0);
    CHECK(word.load() == 600);
    ::munmap(memory, 4096);
}
