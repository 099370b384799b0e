// herring: tests of collectives/reduce_scatter.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/reduce_scatter.hpp"

#include "unit/collectives/collectives.hpp"

#include "doctest/doctest.h"

#include <span>

using namespace collectives;

namespace {
template <class Reducer> int sums_of_ranges(herring::world& world) {
    Reducer reduce(world);
    for (std::size_t const n : sizes) {
        std::vector<float> in = filled(world.rank(), n);
        herring::range const own = reduce.owned(n);
        if (own != reduce.owned(n, world.rank())) return 5;
        std::vector<float> const due = sums(world.size(), own.elements, own.offset);
        std::vector<float> mine(own.elements, -1);
        for (int turn = 0; turn < 2; ++turn) {
            herring::reduce_scatter(reduce, in, mine);
            if (!same_bytes(mine, due)) return 1;
        }
        if (!same_bytes(in, filled(world.rank(), n))) return 2; // is only read
        // Where it belongs in the input.
        std::span<float> const place = std::span(in).subspan(own.offset, own.elements);
        if (!herring::reduce_scatter(reduce, in, place, std::chrono::seconds(20)).ok()) return 3;
        if (!same_bytes(place, due)) return 4;
    }
    return 0;
}
} // namespace

TEST_CASE("reduce_scatter: each rank gets the sum of its range, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, sums_of_ranges<flat>) == 0);
        CHECK(run(shape, sums_of_ranges<nodes>) == 0);
    }
}

TEST_CASE(
    "reduce_scatter: a range of another size, and one that overlaps, are refused, and nothing is lost") {
    CHECK(run({"a", "a"}, [](herring::world& world) {
              nodes reduce(world);
              std::vector<float> in = filled(world.rank(), 100), mine(51);
              try {
                  herring::reduce_scatter(reduce, in, mine);
                  return 1;
              } catch (herring::error const& why) {
                  if (why.code() != herring::errc::bad_argument) return 2;
              }
              try {
                  herring::reduce_scatter(reduce, in, std::span(in).subspan(25, 50));
                  return 3;
              } catch (herring::error const& why) {
                  if (why.code() != herring::errc::bad_argument) return 4;
              }
              mine.resize(50);
              herring::reduce_scatter(reduce, in, mine);
              return mine[0] == sum(2, reduce.owned(100, world.rank()).offset) ? 0 : 5;
          }) == 0);
}
