// herring: tests of engine/context.hpp: what element types share; engine_test.cpp sums chunks by it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/context.hpp"

#include "doctest/doctest.h"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/average.hpp"
#include "herring/update/sum.hpp"

#include <type_traits>

TEST_CASE("context: element types and rules share one core") {
    using node = herring::intra_node::shared_memory;
    using of_float =
        herring::detail::engine_context<float, herring::transport::inproc, node, herring::update::average>;
    using of_double =
        herring::detail::engine_context<double, herring::transport::inproc, node, herring::update::sum>;
    CHECK(std::is_same_v<of_float::core, of_double::core>);
    CHECK(std::is_base_of_v<of_float::core, of_double>);
    CHECK(std::is_same_v<of_double::accumulator, double>);
}
