// herring: test of collectives/scatter.hpp beside others; gather_test.cpp has those of both.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/scatter.hpp"

#include "unit/collectives/blocks.hpp"

#include "doctest/doctest.h"

using namespace collectives;

TEST_CASE("scatter: structs, and ranks that give no memory but the root") {
    struct part {
        char name;
        double weight;
    };
    CHECK(run({"a", "b", "a"}, [](herring::world& world) {
              nodes reduce(world);
              std::vector<part> const all =
                  world.rank() == 1 ? std::vector<part>{{'a', 1}, {'b', 2}, {'c', 3}} : std::vector<part>();
              part mine[1] = {};
              herring::scatter(reduce, all, mine, 1);
              return mine[0].name == 'a' + world.rank() && mine[0].weight == world.rank() + 1 ? 0 : 1;
          }) == 0);
}
