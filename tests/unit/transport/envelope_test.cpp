// herring: tests of transport/envelope.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/envelope.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <span>

using herring::detail::kept_envelope;
using herring::detail::most_envelope_bytes;

TEST_CASE("envelope: a copy, of nothing up to 32 bytes") {
    std::array<std::byte, most_envelope_bytes> from{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
    for (std::size_t size = 0; size <= from.size(); ++size) {
        kept_envelope kept(std::span<std::byte const>(from).first(size));
        REQUIRE(kept.view().size() == size);
        for (std::size_t i = 0; i < size; ++i) CHECK(kept.view()[i] == from[i]);
        kept.keep({});
        CHECK(kept.view().empty());
    }
    CHECK(kept_envelope().view().empty());
}
