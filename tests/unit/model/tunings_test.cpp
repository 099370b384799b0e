// herring: tests of model/tunings.hpp: the defaults, and values that are compared.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/tunings.hpp"

#include "doctest/doctest.h"

using herring::exchange_tuning;

TEST_CASE(
    "exchange_tuning: the defaults are usable: a window of several chunks, and no limit that is below one") {
    constexpr exchange_tuning usual{};
    CHECK(usual.chunk_bytes >= 4096);
    CHECK(usual.window_bytes >= usual.chunk_bytes);
    CHECK(usual.local_chunk_bytes >= 4096);
    CHECK(usual ==
          exchange_tuning{
              .one_hop_bytes = 0, .one_hop_bytes_two_nodes = 0, .mailbox_bytes = 0, .split_bytes = 0});
    CHECK(usual != exchange_tuning{.one_hop_bytes = 1});
}

TEST_CASE("gpu tuning: the defaults, and values that are compared") {
    using herring::gpu::peer_sums_tuning;
    using herring::gpu::staging_tuning;
    CHECK(staging_tuning{}.slot_count >= 2);
    CHECK(staging_tuning{}.local_chunk_bytes >= 4096);
    CHECK(staging_tuning{}.sum_threads == herring::gpu::by_cores);
    CHECK(peer_sums_tuning{}.slot_count >= 2);
    static_assert(staging_tuning{} == staging_tuning{} &&
                  !(staging_tuning{.slot_count = 3} == staging_tuning{}));
    static_assert(!(peer_sums_tuning{.graphs = true} == peer_sums_tuning{}));
}

using tuning = herring::intra_node::shared_memory_tuning;

TEST_CASE("shared_memory_tuning: the defaults, and values that are compared") {
    constexpr tuning usual;
    CHECK(usual.local_chunk_bytes >= 4096);
    CHECK(usual.mailbox_bytes < usual.local_chunk_bytes);
    static_assert(usual == tuning{} && !(usual == tuning{.mailbox_bytes = 0}));
}

TEST_CASE("tcp_tuning: the defaults") {
    constexpr herring::transport::tcp_tuning usual;
    CHECK(usual.chunk_bytes >= 4096);
    CHECK(usual.window_bytes >= 2 * usual.chunk_bytes);
    CHECK(usual.loopback_window_bytes >= 2 * usual.loopback_chunk_bytes);
    CHECK(usual.connections == 1);
    CHECK(usual.control == herring::transport::congestion::unpaced);
}
