// herring: tests of transport/sealed/envelope.hpp: the bytes that ranks of any machine agree on.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/envelope.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include <array>
#include <cstddef>

using herring::detail::sealed_beside;
using herring::detail::sealed_envelope;

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
