// herring: lines that are claimed keep their bytes, and none behind them is touched.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/copies.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <sys/mman.h>
#include <vector>

using namespace herring;

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
