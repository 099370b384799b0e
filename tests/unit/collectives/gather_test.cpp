// herring: tests of collectives/gather.hpp and scatter.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/gather.hpp"

#include "herring/collectives/scatter.hpp"
#include "unit/collectives/blocks.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <span>
#include <string>

using namespace collectives;

namespace {
template <class Reducer> int to_and_from_every_root(herring::world& world) {
    Reducer reduce(world);
    int const me = world.rank(), ranks = world.size();
    for (std::size_t const n : block_sizes)
        for (int root = 0; root < ranks; ++root) {
            bool const here = me == root;
            std::vector<std::uint32_t> mine, due, all(here ? n * static_cast<std::size_t>(ranks) : 0);
            append_block(mine, me, root, n);
            for (int r = 0; here && r < ranks; ++r) append_block(due, r, root, n);
            herring::gather(reduce, mine, all, root);
            if (all != due) return 1;
            std::vector<std::uint32_t> back(n);
            herring::scatter(reduce, all, back, root);
            if (back != mine) return 2;
            if (!here) {
                if (!herring::gather(reduce, mine, all, root, std::chrono::seconds(20)).ok()) return 3;
                if (!herring::scatter(reduce, all, back, root, std::chrono::seconds(20)).ok()) return 4;
                continue;
            }
            auto const place = std::span(all).subspan(n * static_cast<std::size_t>(root), n); // its own block
            if (!herring::gather(reduce, place, all, root, std::chrono::seconds(20)).ok() || all != due)
                return 5;
            if (!herring::scatter(reduce, all, place, root, std::chrono::seconds(20)).ok() || all != due)
                return 6;
        }
    return 0;
}
} // namespace

TEST_CASE("gather, scatter: blocks to every root and back, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, to_and_from_every_root<flat>) == 0);
        CHECK(run(shape, to_and_from_every_root<nodes>) == 0);
    }
}

TEST_CASE("gather, scatter: roots that differ are a mismatch on every rank, which says where blocks go") {
    for (auto const& shape : std::vector<std::vector<std::string>>{{"a", "a"}, {"a", "b"}, {"a", "a", "a"}})
        for (std::size_t const n : {std::size_t{10}, std::size_t{100'000}}) {
            std::vector<std::string> told(shape.size());
            run(shape, [&](herring::world& world) {
                nodes reduce(world);
                std::vector<float> const mine(n);
                std::vector<float> all(n * shape.size());
                herring::status const ended =
                    herring::gather(reduce, mine, all, world.rank() == 1 ? 1 : 0, std::chrono::seconds(20));
                if (ended.why().what == herring::errc::mismatch)
                    told[static_cast<std::size_t>(world.rank())] = ended.why().message();
                return 0;
            });
            for (std::string const& one : told) {
                CAPTURE(one);
                CHECK(one.find("a call of gather to rank") != std::string::npos);
            }
        }
}

TEST_CASE("gather, scatter: a size or a root that does not fit is refused, and nothing is lost") {
    CHECK(run({"a", "b"}, [](herring::world& world) {
              flat reduce(world);
              std::vector<float> const mine(10, 1);
              std::vector<float> all(19), block(10);
              int refused = 0;
              for (int turn = 0; turn < 4; ++turn) try {
                      if (turn == 0) herring::gather(reduce, mine, all, 2);
                      if (turn == 1) herring::scatter(reduce, all, block, -1);
                      if (world.rank() == 0 && turn == 2) herring::gather(reduce, mine, all, 0);
                      if (world.rank() == 0 && turn == 3) herring::scatter(reduce, all, block, 0);
                  } catch (herring::error const& why) {
                      refused += why.code() == herring::errc::bad_argument;
                  }
              if (refused != (world.rank() == 0 ? 4 : 2)) return 1;
              all.resize(20);
              herring::gather(reduce, mine, all, 0);
              return world.rank() > 0 || all == std::vector<float>(20, 1) ? 0 : 2;
          }) == 0);
}
