// herring: tests of lazy_reducer.hpp: which packs it is of, its collectives, an empty layout, a rank that leaves in a step.
// SPDX-License-Identifier: Apache-2.0
#include "herring/lazy_reducer.hpp"

#include "doctest/doctest.h"

#include "herring/collectives/all_gather.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/sum.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {
using herring::transport::inproc;
using lazy_type = herring::reducer<float, inproc, herring::sync::every<2>, herring::update::average>;
using plain_type = herring::reducer<float, inproc, herring::update::average>;

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}
} // namespace

TEST_CASE("lazy_reducer: of packs that skip steps, and of no others") {
    CHECK(std::is_same_v<lazy_type, herring::basic_lazy_reducer<lazy_type::pack>>);
    CHECK(std::is_same_v<plain_type, herring::basic_reducer<plain_type::pack>>);
    CHECK(
        std::is_same_v<plain_type,
                       herring::reducer<float, inproc, herring::sync::every_step, herring::update::average>>);
}

TEST_CASE("lazy_reducer: collectives between steps, and between wait and settle") {
    CHECK(herring::launch_threads(2, [](herring::world& ranks) {
              lazy_type lazy(ranks, herring::layout{{"a", 4}});
              std::vector<float> mine(2, static_cast<float>(ranks.rank())), all(4);
              auto const collect = [&] {
                  herring::all_gather(lazy, std::span<float const>(mine), std::span<float>(all));
                  require(all == std::vector<float>{0, 0, 1, 1}, "all_gather");
                  require(lazy.all_reduce(static_cast<float>(ranks.rank())) == 0.5f, "all_reduce");
              };
              for (int n = 0; n < 3; ++n) {
                  collect();
                  lazy.ready(0);
                  lazy.wait();
                  collect();
                  lazy.updated(0);
                  lazy.settle();
              }
              return 0;
          }) == 0);
}

TEST_CASE("lazy_reducer: a layout without tensors takes steps that do nothing") {
    CHECK(herring::launch_threads(2, [](herring::world& ranks) {
              herring::reducer<float, inproc, herring::sync::selective<>> lazy(ranks, herring::layout{});
              for (int n = 0; n < 3; ++n) {
                  require(lazy.wait() == herring::step::local, "there is nothing to exchange");
                  lazy.settle();
              }
              return 0;
          }) == 0);
}

TEST_CASE("lazy_reducer: a rank that leaves between wait and settle is named by the others") {
    std::string said;
    CHECK_THROWS(herring::launch_threads(2, [&](herring::world& ranks) {
        lazy_type lazy(ranks, herring::layout{{"a", 4}});
        lazy.ready(0);
        lazy.wait(); // local
        if (ranks.rank() == 1) throw std::runtime_error("left");
        lazy.updated(0);
        lazy.settle();
        try {
            lazy.ready(0);
            lazy.wait();
            lazy.updated(0);
            lazy.settle();
        } catch (herring::error const& why) {
            said = why.what();
        }
    }));
    INFO(said);
    CHECK(said.find("rank 1") != std::string::npos);
}
