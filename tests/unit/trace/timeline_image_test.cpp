// herring: tests of trace/timeline_image.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_image.hpp"

#include "doctest/doctest.h"

using namespace herring::detail;

TEST_CASE("timeline image: parts follow each other, and records are aligned to a line") {
    timeline_header h{};
    h.ranks = 3;
    h.buckets = 5;
    h.names_bytes = 7;
    h.rings[0].slots = 64;
    h.rings[1].slots = 32;
    constexpr auto places = [](timeline_header const& of) { return timeline_places::of(of); };
    timeline_places const at = places(h);
    CHECK(at.buckets >= sizeof h);
    CHECK(at.nodes == at.buckets + 5 * 8);
    CHECK(at.names == at.nodes + 3 * 4);
    CHECK(at.rings[0] >= at.names + 7);
    CHECK(at.rings[0] % 64 == 0);
    CHECK(at.rings[1] == at.rings[0] + 64 * 32);
    CHECK(at.end == at.rings[1] + 32 * 32);
}

TEST_CASE("timeline image: each event has the ring of the thread that it comes from") {
    using enum herring::trace_event;
    for (auto const e : {tensor_ready, bucket_submitted, wait_begin, wait_end}) CHECK_FALSE(is_of_engine(e));
    for (auto const e :
         {bucket_reduced, part_sent, part_arrived, fold_begin, fold_end, result_sent, result_arrived,
          credit_stall, waits_for, to_host_begin, to_host_end, to_device_begin, to_device_end})
        CHECK(is_of_engine(e));
}
