// herring: what is fetched is a copy, and what is left in its place is what comes next, at any size and alignment.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/copies.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <span>
#include <vector>

using namespace herring;

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
