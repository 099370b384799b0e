// herring: tests of transport/decorated.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/decorated.hpp"

#include "doctest/doctest.h"

#include <string>
#include <type_traits>

namespace detail = herring::detail;

namespace {
struct quick {
    static constexpr char const* word = "quick";
};
struct bare {
    static constexpr char const* name = "bare";
};
struct first_need {};
struct second_need {};
struct needy : bare {
    using needs = herring::needs<first_need>;
};
} // namespace

TEST_CASE("decorated: the name has the decorator around that of the transport") {
    CHECK(std::string(detail::composed_name<quick, bare>.data()) == "quick<bare>");
}

TEST_CASE("decorated: the needs of the transport come first, if it has any") {
    CHECK(std::is_same_v<detail::needs_and<bare, second_need>::type, herring::needs<second_need>>);
    CHECK(
        std::is_same_v<detail::needs_and<needy, second_need>::type, herring::needs<first_need, second_need>>);
}
