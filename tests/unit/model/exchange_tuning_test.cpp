// herring: tests of model/tunings.hpp.
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
