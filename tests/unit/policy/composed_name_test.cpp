// herring: tests of policy/composed_name.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/composed_name.hpp"

#include <string_view>

#include "doctest/doctest.h"

namespace composed_name_test {

struct head {
    static constexpr char const* word = "mean";
};
struct one {
    static constexpr char const* name = "one";
};
struct two {
    static constexpr char const* name = "two";
};
using herring::detail::composed_name;
static_assert(std::string_view(composed_name<head>.data()) == "mean<>");
static_assert(std::string_view(composed_name<head, one>.data()) == "mean<one>");
static_assert(std::string_view(composed_name<head, one, two>.data()) == "mean<one, two>");

} // namespace composed_name_test
