// herring: tests of transport/sealed/ciphertexts.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/ciphertexts.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <set>

using herring::detail::ciphertexts;
using herring::detail::waiting_places;

TEST_CASE("ciphertexts: every place once, none over another, the last that came back first") {
    for (std::size_t const largest : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1000}}) {
        ciphertexts all(5, largest, 0);
        CHECK(all.memory().size() == ciphertexts::bytes_for(5, largest));
        CHECK(ciphertexts::bytes_for(5, largest) == 5 * ((largest + 63) / 64 * 64));
        std::set<std::size_t> taken;
        for (std::size_t i = 0; i < 5; ++i) {
            REQUIRE_FALSE(all.empty());
            std::size_t const place = all.take();
            CHECK(taken.insert(place).second);
            all[place].token = place + 100;
            if (largest == 0) continue;
            CHECK(reinterpret_cast<std::uintptr_t>(all.at(place)) % 64 == 0);
            for (std::size_t b = 0; b < largest; ++b) {
                CHECK_MESSAGE(all.at(place)[b] == std::byte{0}, "another one's");
                all.at(place)[b] = std::byte{1};
            }
        }
        CHECK(all.empty());
        CHECK(*taken.rbegin() == 4);
        all.give_back(3);
        all.give_back(1);
        CHECK(all.take() == 1);
        CHECK(all[1].token == 101);
        CHECK(all.take() == 3);
        CHECK(all.empty());
    }
    CHECK(ciphertexts().empty());
}

TEST_CASE("waiting_places: in the order of posting, round and round") {
    waiting_places ring(3);
    std::size_t in = 0, out = 0;
    for (int turn = 0; turn < 100; ++turn) {
        while (in - out < 3) ring.push(in++);
        CHECK(ring.front() == out);
        for (int i = 0; i < 1 + turn % 3; ++i) {
            CHECK(ring.front() == out++);
            ring.pop();
        }
        CHECK(ring.empty() == (in == out));
    }
    std::size_t const left = in - out;
    CHECK(ring.clear() == left);
    CHECK(ring.empty());
}
