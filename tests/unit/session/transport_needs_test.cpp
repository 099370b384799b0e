// herring: tests of session/transport_needs.hpp; tests/unit/engine holds it against what an engine posts.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/transport_needs.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/per_tensor.hpp"
#include "herring/placement/colocated.hpp"
#include "herring/sharding/balanced.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

using namespace herring;

TEST_CASE("transport_needs: two windows, one of one hop, and the largest chunk as it travels") {
    std::size_t const tensors[] = {100'000};
    exchange_tuning const tuning{.chunk_bytes = 4096, .window_bytes = 5 * 4096};
    std::vector<int> const peers{1, 2};
    for (int const local : {1, 2}) {
        plan const made = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
            tensors, topology::uniform(3, local), 2, 4, tuning);
        transport_needs const needs = detail::transport_needs_of(made, peers, std::chrono::milliseconds(70));
        CHECK(needs.receives_per_peer == 2 * 5 + plan::one_hop_window() + 4);
        CHECK(needs.sends_per_peer == needs.receives_per_peer);
        CHECK(needs.largest_message == (local == 1 ? 4096u : 8192u)); // a node's sum is wide
        CHECK(needs.peers.data() == peers.data());
        CHECK(needs.timeout == std::chrono::milliseconds(70));
    }
}
