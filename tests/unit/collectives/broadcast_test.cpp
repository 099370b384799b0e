// herring: tests of collectives/broadcast.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/broadcast.hpp"

#include "unit/collectives/collectives.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

using namespace collectives;

namespace {
template <class Reducer> int from_every_root(herring::world& world) {
    Reducer reduce(world);
    for (std::size_t const n : sizes)
        for (int root = 0; root < world.size(); ++root) {
            std::vector<float> inout = filled(world.rank(), n);
            std::vector<float> const due = filled(root, n);
            herring::broadcast(reduce, inout, root);
            if (!same_bytes(inout, due)) return 1;
            if (!herring::broadcast(reduce, inout, root, std::chrono::seconds(20)).ok()) return 2;
            if (!same_bytes(inout, due)) return 3;
        }
    return 0;
}
} // namespace

TEST_CASE("broadcast: each rank gets the root's buffer, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, from_every_root<flat>) == 0);
        CHECK(run(shape, from_every_root<nodes>) == 0);
    }
}

namespace {
int other_types(herring::world& world) {
    nodes reduce(world);
    int const root = world.size() - 1;
    std::string text(1000, world.rank() == root ? 'h' : ' ');
    herring::broadcast(reduce, text, root);
    if (text != std::string(1000, 'h')) return 1;
    bool flags[3] = {world.rank() == root, false, world.rank() == root};
    herring::broadcast(reduce, flags, root, std::chrono::seconds(20)).value();
    if (!flags[0] || flags[1] || !flags[2]) return 2;
    std::vector<std::uint16_t> large(400'001, static_cast<std::uint16_t>(world.rank() + 1));
    herring::broadcast(reduce, large, 0);
    return large == std::vector<std::uint16_t>(large.size(), 1) ? 0 : 3;
}
} // namespace

TEST_CASE("broadcast: text, flags and 16-bit integers, whatever the reducer's elements") {
    for (auto const& shape : shapes) CHECK(run(shape, other_types) == 0);
}

TEST_CASE("broadcast: a root that is no rank is refused, and nothing is lost") {
    CHECK(run({"a", "a"}, [](herring::world& world) {
              nodes reduce(world);
              std::vector<float> inout = filled(world.rank(), 10);
              for (int const root : {-1, 2}) try {
                      herring::broadcast(reduce, inout, root);
                      return 1;
                  } catch (herring::error const& why) {
                      if (why.code() != herring::errc::bad_argument) return 2;
                      if (std::string(why.what()).find("no rank " + std::to_string(root)) ==
                          std::string::npos)
                          return 3;
                  }
              herring::broadcast(reduce, inout, 1);
              return inout == filled(1, 10) ? 0 : 4;
          }) == 0);
}

TEST_CASE("broadcast: roots that differ are a mismatch on every rank") {
    for (auto const& shape : std::vector<std::vector<std::string>>{{"a", "a"}, {"a", "b"}, {"a", "a", "a"}})
        for (std::size_t const n : {std::size_t{10}, std::size_t{100'000}}) {
            std::vector<int> told(shape.size());
            run(shape, [&](herring::world& world) {
                nodes reduce(world);
                std::vector<float> inout = filled(world.rank(), n);
                herring::status const ended =
                    herring::broadcast(reduce, inout, world.rank() == 1 ? 1 : 0, std::chrono::seconds(20));
                told[static_cast<std::size_t>(world.rank())] =
                    ended.why().what == herring::errc::mismatch ? 1 : 2;
                return 0;
            });
            for (int const one : told) CHECK(one == 1);
        }
}
