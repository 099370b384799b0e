// herring: tests of collectives/broadcast.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/broadcast.hpp"

#include "unit/collectives/collectives.hpp"

#include "doctest/doctest.h"

#include <string>

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
