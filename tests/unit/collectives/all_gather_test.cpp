// herring: tests of collectives/all_gather.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_gather.hpp"

#include "herring/collectives/broadcast.hpp"
#include "unit/collectives/collectives.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <span>

using namespace collectives;

namespace {
template <class Reducer> int all_ranges(herring::world& world) {
    Reducer reduce(world);
    for (std::size_t const n : sizes) {
        herring::range const own = reduce.owned(n);
        std::vector<float> const mine = filled(world.rank(), own.elements, own.offset);
        std::vector<float> const unset(n, -1);
        std::vector<float> out;
        auto const is_due = [&] { return has_ranges_of_all(reduce, world.size(), out); };
        for (int turn = 0; turn < 2; ++turn) {
            out = unset;
            herring::all_gather(reduce, mine, out);
            if (!is_due()) return 1;
        }
        // Its own range is where it belongs already.
        out = unset;
        std::span<float> const place = std::span(out).subspan(own.offset, own.elements);
        std::copy(mine.begin(), mine.end(), place.begin());
        if (!herring::all_gather(reduce, place, out, std::chrono::seconds(20)).ok()) return 2;
        if (!is_due()) return 3;
    }
    return 0;
}
} // namespace

TEST_CASE("all_gather: each rank gets what all own, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, all_ranges<flat>) == 0);
        CHECK(run(shape, all_ranges<nodes>) == 0);
    }
}

namespace {
// Results of 64 MiB in all are written past the caches: whole lines, and what lies before and behind them.
int large_ranges(herring::world& world) {
    nodes reduce(world);
    {
        std::size_t const first = 1; // element of a line that is not the buffer's
        std::size_t const n =
            (std::size_t{64} << 20) / sizeof(float) / static_cast<std::size_t>(world.size()) + 77;
        herring::range const own = reduce.owned(n);
        std::vector<float> const mine = filled(world.rank(), own.elements, own.offset);
        std::vector<float> const unset(first + n + 16, -1);
        std::vector<float> memory = unset;
        std::span<float> const out = std::span(memory).subspan(first, n);
        auto const is_due = [&] {
            return has_ranges_of_all(reduce, world.size(), out) && memory[0] == -1 &&
                   same_bytes(std::span(memory).last(16), std::span(unset).last(16));
        };
        herring::all_gather(reduce, mine, out);
        if (!is_due()) return 1;
        std::span<float> const place = out.subspan(own.offset, own.elements);
        auto const forget = [&] { std::copy_n(unset.begin(), n, out.begin()); };
        forget();
        std::copy(mine.begin(), mine.end(), place.begin());
        herring::all_gather(reduce, place, out);
        if (!is_due()) return 2;
        if (world.rank() > 0) forget();
        herring::broadcast(reduce, out, 0);
        if (!is_due()) return 3;
    }
    return 0;
}
} // namespace

TEST_CASE("all_gather: buffers that are written past the caches, wherever they begin in a line") {
    CHECK(run({"a", "a", "a"}, large_ranges) == 0);
}

TEST_CASE("all_gather: a range of another size is refused, and in the middle of a step every call is") {
    CHECK(run({"a", "b"}, [](herring::world& world) {
              flat reduce(world, {{"w", 4}, {"b", 4}});
              std::vector<float> mine(7), out(13);
              try {
                  herring::all_gather(reduce, std::span(mine).first(5), out);
                  return 1;
              } catch (herring::error const& why) {
                  if (why.code() != herring::errc::bad_argument) return 2;
              }
              reduce.ready(0);
              try {
                  herring::all_gather(reduce, std::span(mine).first(reduce.owned(13, world.rank()).elements),
                                      out);
                  return 3;
              } catch (herring::error const& why) {
                  if (why.code() != herring::errc::bad_state) return 4;
              }
              reduce.ready(1);
              reduce.wait();
              return 0;
          }) == 0);
}
