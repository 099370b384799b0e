// herring: the base of the pipelines whose devices sum: where sums lie beside results, in slots and on the device.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/summing_pipeline.hpp"

#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <cstddef>

using namespace herring;

namespace {
struct base : gpu::summing_pipeline<gpu::host_runtime, false, false> {
    base(world& ranks, gpu::device_needs const& needs) : summing_pipeline(ranks, needs, 64, 2, false) {}
    using summing_pipeline::is_free;
    using summing_pipeline::part_in;
    using summing_pipeline::region_;
    using summing_pipeline::seen_slot;
    using summing_pipeline::stored_count_;
};
} // namespace

TEST_CASE(
    "summing_pipeline: sums lie behind results where they are wider, and in their place where they are not") {
    gpu::host_machine machine;
    world alone;
    for (std::size_t const ratio : {1u, 2u}) {
        base mine(alone, {.bucket_bytes = 1000, .part_ratio = ratio, .executions = 4, .nodes = 2});
        for (std::uint64_t const e : {0u, 1u}) {
            std::byte* const slot = mine.region_.slot(e);
            for (std::size_t const inside : {0u, 8u, 998u}) {
                std::byte* const due = ratio == 1 ? slot + inside : slot + 1024 + 2 * inside;
                CHECK(mine.part(slot + inside) == due);
            }
            CHECK(mine.part_in(slot) == mine.part(slot));
        }
        CHECK(mine.region_.slot_stride() >= 1000 * (ratio == 1 ? 1 : 3));
        CHECK(mine.parts().empty());
        CHECK(mine.is_free(1));
        CHECK_FALSE(mine.is_free(2));
        mine.stored_count_ = 1;
        CHECK(mine.is_free(2));
    }
}

TEST_CASE("summing_pipeline: on one node there are no slots, and an address is its own part's") {
    gpu::host_machine machine;
    world alone;
    base mine(alone, {.bucket_bytes = 1000, .part_ratio = 2, .executions = 4});
    std::byte* const at = mine.memory();
    CHECK(mine.part(at) == at);
    CHECK(mine.region_.slots() == 0);
    CHECK(mine.is_free(1000));
}

TEST_CASE(
    "summing_pipeline: what another node serves lies on the device, if the transport takes its memory") {
    gpu::host_machine machine;
    world alone;
    base mine(alone,
              {.bucket_bytes = 1000, .part_ratio = 2, .executions = 4, .nodes = 2, .parts_on_device = true});
    CHECK(mine.parts().size() == 2 * mine.region_.slot_stride());
    shard of;
    execution x;
    x.path = route::two_hop;
    of.server = server_id::at(1);
    CHECK(mine.seen_slot(1, x, of) == mine.parts().data() + mine.region_.slot_stride());
    of.server = server_id::at(0); // this node's
    CHECK(mine.seen_slot(1, x, of) == mine.region_.slot(1));
    of.server = server_id::at(1);
    x.path = route::one_hop;
    CHECK(mine.seen_slot(1, x, of) == mine.region_.slot(1));
    std::span<std::byte> const host(mine.region_.slot(1) + 8, 16);
    CHECK(mine.on_device(host).data() == mine.parts().data() + mine.region_.slot_stride() + 8);
    CHECK(mine.on_device(host).size() == 16);
}
