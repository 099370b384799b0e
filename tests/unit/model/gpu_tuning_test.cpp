// herring: tests of model/tunings.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/tunings.hpp"

#include "doctest/doctest.h"

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
