// herring: tests of model/element.hpp: which types are elements, and which can be made elements.
// SPDX-License-Identifier: Apache-2.0
// Own object: it specialises templates of the library.
#include "herring/model/element.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>

namespace {
struct three_doubles {
    double values[3];
};
struct with_text {
    std::string text;
};
struct of_260_bytes {
    float values[65];
};
struct of_65_bytes {
    char values[65];
};
struct with_virtual {
    virtual void call() {}
};
} // namespace
template <> inline constexpr bool herring::is_element<three_doubles> = true;

TEST_CASE("element types: numbers of 8 to 64 bits, bool, and what the user specialises") {
    CHECK(herring::is_element<float>);
    CHECK(herring::is_element<std::int64_t>);
    CHECK(herring::is_element<std::uint32_t>);
    CHECK(herring::is_element<three_doubles>);
    CHECK_FALSE(herring::is_element<char>);
    CHECK(herring::is_element<bool>);
    CHECK(herring::is_element<std::int8_t>);
    CHECK(herring::is_element<std::uint8_t>);
    CHECK(herring::is_element<std::int16_t>);
    CHECK(herring::is_element<std::uint16_t>);
    CHECK_FALSE(herring::is_element<float const>);
    CHECK_FALSE(herring::is_element<with_text>);
}

TEST_CASE("element types: what can be moved byte by byte, in whole chunks") {
    using herring::detail::fit_element;
    CHECK(fit_element<three_doubles>);
    CHECK_FALSE(fit_element<with_text>);
    CHECK_FALSE(fit_element<of_260_bytes>);
    CHECK_FALSE(fit_element<of_65_bytes>);
    CHECK_FALSE(fit_element<with_virtual>);
    CHECK_FALSE(fit_element<double*>);
    CHECK(fit_element<bool>);
}
