// herring: tests of control/gather_result.hpp. SPDX-License-Identifier: Apache-2.0
#include <herring/control/gather_result.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

TEST_CASE("gather_result: ranks give different lengths, also nothing") {
    char const* const given[] = {"", "abc", "", "de", ""};
    herring::detail::fixed_array<std::size_t> sizes(5);
    for (std::size_t r = 0; r < 5; ++r) sizes[r] = std::strlen(given[r]);
    herring::gather_result all(std::move(sizes));
    REQUIRE(all.size() == 5);
    for (std::size_t r = 0; r < 5; ++r) {
        REQUIRE(all[r].size() == std::strlen(given[r]));
        for (std::byte const b : std::as_const(all)[r]) CHECK(b == std::byte{0});
        std::memcpy(all[r].data(), given[r], all[r].size());
    }
    std::string text;
    std::size_t ranks = 0;
    herring::gather_result const moved = std::move(all);
    for (auto const& theirs : moved) {
        text.append(reinterpret_cast<char const*>(theirs.data()), theirs.size()).append(1, '|');
        CHECK(theirs.data() == moved[ranks++].data());
    }
    CHECK(text == "|abc||de||");
}

TEST_CASE("gather_result: of nobody, and of ranks that all give nothing") {
    CHECK(herring::gather_result().size() == 0);
    CHECK(herring::gather_result().begin() == herring::gather_result().end());
    herring::gather_result const silent{herring::detail::fixed_array<std::size_t>(2)};
    REQUIRE(silent.size() == 2);
    CHECK(silent[0].empty());
    CHECK(silent[1].empty());
}
