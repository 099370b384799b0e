// herring: tests of the transport needs in session/construction.hpp; tests/unit/engine holds it against what an engine posts.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/construction.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

using namespace herring;

TEST_CASE("transport_needs: two windows, and the largest chunk as it travels") {
    std::size_t const tensors[] = {100'000};
    exchange_tuning const tuning{.chunk_bytes = 4096, .window_bytes = 5 * 4096};
    std::vector<int> const peers{1, 2};
    for (int const local : {1, 2}) {
        plan const made = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
            tensors, topology::uniform(3, local), 2, 8, tuning);
        transport_needs const needs = detail::transport_needs_of(made, peers, std::chrono::milliseconds(70));
        CHECK(needs.receives_per_peer == 2 * 5 + 4); // nothing takes one hop
        CHECK(needs.sends_per_peer == needs.receives_per_peer);
        // Two chunks' bytes, of an all-gather; a node's sum is four times as wide here.
        CHECK(needs.largest_message == (local == 1 ? 8192u : 16'384u));
        CHECK(needs.peers.data() == peers.data());
        CHECK(needs.timeout == std::chrono::milliseconds(70));
    }
}

TEST_CASE("transport_needs: by dissemination a message has the parts of up to half the nodes") {
    std::size_t const tensors[] = {1024};
    exchange_tuning tuning{.chunk_bytes = 8 << 10,
                           .window_bytes = 16 << 10,
                           .one_hop_bytes = 16 << 10,
                           .message_ns = 1000,
                           .latency_ns = 1,
                           .dissemination_bytes = 4096};
    for (int const local : {1, 2}) {
        auto const planned = [&] {
            return make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
                tensors, topology::uniform(16, local), 4, 8, tuning);
        };
        std::size_t const part = local == 1 ? 4096 : 8192; // a node's sum is wide
        tuning.max_message_bytes = static_cast<std::size_t>(-1);
        plan const large = planned();
        CHECK(large.buckets[0].path == route::dissemination);
        transport_needs const needs = detail::transport_needs_of(large, {});
        CHECK(needs.largest_message == 8 * part);
        CHECK(needs.receives_per_peer == 2 * 2 + plan::one_hop_window() + plan::dissemination_window() + 4);
        CHECK(needs.sends_per_peer == needs.receives_per_peer);

        tuning.max_message_bytes = 8 * part;
        CHECK(planned().buckets[0].path == route::dissemination);
        tuning.max_message_bytes = 8 * part - 1; // the transport does not carry that much
        plan const small = planned();
        CHECK(small.buckets[0].path == route::one_hop);
        CHECK(small.dissemination_limit() == 4092); // smaller buckets still take the route
        CHECK(detail::transport_needs_of(small, {}).largest_message < 8 * part);
    }
}
