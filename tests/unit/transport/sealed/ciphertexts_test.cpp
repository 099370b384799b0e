// herring: tests of transport/sealed/ciphertexts.hpp: places of memory, and the bytes that ranks of any machine agree on.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/ciphertexts.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

using herring::detail::ciphertexts;
using herring::detail::sealed_beside;
using herring::detail::sealed_envelope;

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

TEST_CASE("sealed_envelope: what a seal covers beside the payload does not depend on the host") {
    CHECK(hex(sealed_beside::of(0x0102030405060708, 0x1112131415161718, 0x2122232425262728, 3, 1,
                                0x31323334)) == "0807060504030201"
                                                "1817161514131211"
                                                "2827262524232221"
                                                "03000000"
                                                "01000000"
                                                "34333231");
}

TEST_CASE("sealed_envelope: the number first, then the tag of the seal") {
    sealed_envelope::buffer bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    CHECK(sealed_envelope::counter_of(bytes.data()) == 0x0706050403020100);
    CHECK(sealed_envelope::tag_of(bytes.data()) == bytes.data() + 8);
    CHECK(bytes.size() == 8 + 16);
}
