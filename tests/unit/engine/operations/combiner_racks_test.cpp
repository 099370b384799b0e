// herring: tests of engine/operations/combiner.hpp: sums by racks of nodes of ranks, on routes that hold the parts of all nodes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/operations/combiner.hpp"

#include "unit/engine/rack_sums.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

/// Small buckets are forwarded, others take one hop or two.
herring::exchange_tuning every_route() {
    herring::exchange_tuning tuning = mesh::small_tuning();
    tuning.message_ns = 10;
    tuning.dissemination_bytes = 64;
    return tuning;
}

} // namespace

TEST_CASE("combiner: racks are summed first, whatever the route, in every shape") {
    for (rack_sums::shape const& on : rack_sums::shapes)
        for (std::uint32_t seed = 1; seed <= 3; ++seed) {
            CAPTURE(seed);
            CAPTURE(on.nodes.size());
            std::vector<std::size_t> const tensors{16, 48, 700, 1, 2999};
            rack_sums::sums<float>(on, tensors, every_route(), seed);
            rack_sums::sums<herring::bfloat16>(on, tensors, every_route(), seed);
        }
}

TEST_CASE("combiner: one rack is as none, to the digest") {
    std::vector<std::size_t> const tensors{16, 700};
    mesh::world_of<float> none({2, 1, 1}, tensors, mesh::small_tuning(), 1, 0);
    mesh::world_of<float> one({2, 1, 1}, tensors, mesh::small_tuning(), 1, 0, {0, 0, 0});
    mesh::world_of<float> two({2, 1, 1}, tensors, mesh::small_tuning(), 1, 0, {0, 0, 1});
    mesh::world_of<float> other({2, 1, 1}, tensors, mesh::small_tuning(), 1, 0, {0, 1, 1});
    CHECK(one.made.digest == none.made.digest);
    CHECK(two.made.digest != none.made.digest);
    CHECK(two.made.digest != other.made.digest);
    CHECK(to_string(none.made).find("rack") == std::string::npos);
    CHECK(to_string(two.made).find("3 nodes of at most 2 ranks in 2 racks") != std::string::npos);
}
