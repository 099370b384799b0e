// herring: tests of wire/wire.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/wire.hpp"

#include "doctest/doctest.h"

#include <vector>

namespace {
struct halves {
    using axis = herring::axes::wire;
    template <class Element>
    requires std::is_floating_point_v<Element>
    using type = std::uint16_t;
};
struct no_template {
    using axis = herring::axes::wire;
    using type = float;
};
struct owning {
    using axis = herring::axes::wire;
    template <class Element> using type = std::vector<Element>;
};
} // namespace

TEST_CASE("wire: the concept") {
    CHECK(herring::wire_policy<halves>);
    CHECK_FALSE(herring::wire_policy<no_template>);
    CHECK_FALSE(herring::wire_policy<owning>);
}
