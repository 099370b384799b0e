// herring: tests of transport/checked/waiting_sends.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/checked/waiting_sends.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>

using herring::detail::waiting_sends;

TEST_CASE("waiting_sends: first in, first out, as many as were announced at least") {
    waiting_sends ring(5);
    CHECK(ring.empty());
    std::uint64_t in = 0, out = 0;
    for (int round = 0; round < 40; ++round) {
        std::size_t held = 0;
        for (; !ring.full(); ++held) ring.push({.tag = in, .token = in + 100}), ++in;
        CHECK(held >= 1);
        for (std::size_t i = 0; i < 5; ++i, ring.pop(), ++out) {
            REQUIRE_FALSE(ring.empty());
            CHECK(ring.front().tag == out);
            CHECK(ring.front().token == out + 100);
        }
    }
    std::size_t const left = static_cast<std::size_t>(in - out);
    CHECK(ring.clear() == left);
    CHECK(ring.empty());
    CHECK(ring.clear() == 0);
}

TEST_CASE("waiting_sends: without any place it is empty and full") {
    waiting_sends none;
    CHECK(none.empty());
    CHECK(none.full());
}
