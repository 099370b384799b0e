// herring: tests of ensemble/places.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/places.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ensemble_places_test {

using herring::detail::ensembles::free_places;
using herring::detail::ensembles::place_index;
using herring::detail::ensembles::place_memory;

TEST_CASE("ensemble places: each begins at a cache line, and none touches another") {
    place_memory const memory(5, 100);
    CHECK(memory.bytes() == 100);
    for (place_index i = 0; i < 5; ++i) {
        auto const bytes = memory[i];
        REQUIRE(bytes.size() == 100);
        CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
        for (std::byte const b : bytes) REQUIRE(b == std::byte{0});
        std::memset(bytes.data(), 0xFF, bytes.size());
    }
}

TEST_CASE("ensemble places: sizes that no memory has are refused by their numbers") {
    CHECK_THROWS_WITH_AS((place_memory{std::size_t{1} << 40, std::size_t{1} << 40}),
                         doctest::Contains("1099511627776 places of 1099511627776 bytes"), herring::error);
    CHECK_THROWS_AS((place_memory{2, ~std::size_t{0} - 3}), herring::error);
}

TEST_CASE("ensemble places: each is taken once, and given back once") {
    free_places places(10, 3);
    place_index a = 0, b = 0, c = 0, none = 0;
    REQUIRE(places.take(a));
    REQUIRE(places.take(b));
    REQUIRE(places.take(c));
    CHECK(a == 10);
    CHECK(b == 11);
    CHECK(c == 12);
    CHECK_FALSE(places.take(none));
    CHECK(places.is_taken(b));
    CHECK(places.give(b));
    CHECK_FALSE(places.is_taken(b));
    CHECK_FALSE(places.give(b)); // twice
    CHECK_FALSE(places.give(9));
    CHECK_FALSE(places.give(13));
    CHECK(places.count() == 1);
    REQUIRE(places.take(none));
    CHECK(none == 11); // the last that came back
    CHECK(places.give(a));
    CHECK(places.give(c));
    CHECK(places.count() == 2);
}

} // namespace ensemble_places_test
