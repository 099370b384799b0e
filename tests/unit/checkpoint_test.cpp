// herring: tests of checkpoint.hpp: one rank saves and loads; tests/conformance and tests/multi_process have the rest.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint.hpp"

#include "doctest/doctest.h"

#include "checkpoint_files.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/transport/inproc.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace checkpoint_test {

using trainer = herring::reducer<double, herring::transport::inproc, herring::optimizer::momentum>;

void run_step(trainer& train, double gradient) {
    for (std::size_t i = 0; i < train.size(); ++i) {
        std::ranges::fill(train.tensor(i), gradient);
        train.ready(i);
    }
    train.wait();
}

} // namespace checkpoint_test

TEST_CASE("checkpoint: one rank, alone") {
    using namespace checkpoint_test;
    herring::tests::scratch_folder const folder;
    herring::world alone;
    trainer train(alone, {{"a", 3}, {"b", 5}});
    train.start(0, [](std::size_t i, std::span<double> into) { std::ranges::fill(into, double(i)); });
    run_step(train, 1);
    std::vector<std::byte> const bytes(3, std::byte{7});
    train.save(folder.path(), bytes);
    auto const all = train.state();
    REQUIRE(all.size() == 4); // of two tensors, weights and the one number of state
    CHECK(all[0].tensor == 0);
    CHECK(all[0].array == 0);
    CHECK(all[0].offset == 0);
    CHECK(all[0].span.size() == 3);
    CHECK(all[0].span.data() == train.weights(0).data());
    CHECK(all[3].tensor == 1);
    CHECK(all[3].array == 1);
    CHECK(all[3].span[4] == 1);
    run_step(train, 1);
    std::vector<double> const due(train.weights(1).begin(), train.weights(1).end());
    CHECK(train.load(folder.path()) == bytes);
    CHECK(train.weights(1)[0] == 1 - 0.01);
    run_step(train, 1);
    CHECK(std::ranges::equal(train.weights(1), due));
}
