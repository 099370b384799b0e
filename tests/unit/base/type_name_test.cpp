// herring: tests of base/type_name.hpp: what messages call a type.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/type_name.hpp"

#include "doctest/doctest.h"

#include <string_view>

namespace {
struct line {
    static constexpr char const* name = "line";
};
template <int> struct numbered {
    static constexpr int name = 0; // no text: the compiler's spelling is used
};
} // namespace

TEST_CASE("policy_name: the name that is given, else the compiler's spelling with its values") {
    CHECK(herring::policy_name<line>() == "line");
    CHECK(herring::policy_name<numbered<7>>().find("numbered<7>") != std::string_view::npos);
    CHECK(herring::policy_name<numbered<7>>() != herring::policy_name<numbered<8>>());
}
