// herring: tests of engine/core.hpp: what engines of all operations share; engine_test.cpp runs it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/core.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include "herring/update/rules.hpp"

#include <type_traits>

TEST_CASE("core: engines of any element type and rule have one core, and one state") {
    using of_float = mesh::world_of<float>::engine;
    using of_double = mesh::world_of<double, herring::update::average>::engine;
    using core = herring::detail::core_of<of_float>;
    CHECK(std::is_same_v<core, herring::detail::core_of<of_double>>);
    CHECK(std::is_base_of_v<herring::detail::engine_state, core>);
}
