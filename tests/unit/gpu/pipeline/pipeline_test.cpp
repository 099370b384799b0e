// herring: the base of the pipelines: what is packed and loaded, once and again.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/pipeline.hpp"

#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <cstring>

using namespace herring;

namespace {
struct base : gpu::pipeline<gpu::host_runtime, false, true> {
    base(world& ranks, gpu::device_needs const& needs) : pipeline(ranks, needs, 64, 4096, 2, false) {}
};
} // namespace

TEST_CASE("pipeline: copies in are captured when they come again, and not when they are others") {
    gpu::host_machine machine({.workers = 0});
    world alone;
    base mine(alone, {.tensor_bytes = 4096, .bucket_bytes = 4096, .executions = 4, .tensors = 4});
    gpu::host_runtime::memory theirs(mine.device(), 4096);
    gpu::host_runtime::stream of_caller(mine.device());
    std::byte* const from = theirs.data();
    gpu::copy_item const both[] = {{mine.tensors(), from, 64}, {mine.tensors() + 1024, from + 512, 64}};
    gpu::copy_item const moved[] = {{mine.tensors(), from + 64, 64}, {mine.tensors() + 1024, from + 512, 64}};
    auto const packed = [&](std::span<gpu::copy_item const> items, int value) {
        std::memset(from, value, 4096);
        mine.after(of_caller.handle());
        mine.pack(1, 2, items);
        (void)mine.load(0, 1, 0, 2048);
        for (int i = 0; i < 10000; ++i) machine.turn();
        return mine.tensors()[63] == std::byte(value) && mine.tensors()[1024] == std::byte(value);
    };
    CHECK(packed(both, 1));
    CHECK(mine.replays() == 0);
    CHECK(packed(both, 2));
    CHECK(packed(both, 3));
    CHECK(mine.replays() == 2);
    CHECK(packed(moved, 4)); // other memory: not that graph
    CHECK(mine.replays() == 2);
    CHECK(packed(std::span(moved, 1), 5) == false); // and fewer
    CHECK(mine.replays() == 2);
    CHECK(packed(moved, 6)); // whose list is as it was
    CHECK(packed(moved, 7));
    CHECK(mine.replays() == 4);
    for (int step = 0; step < 6; ++step) CHECK(packed(step % 2 == 0 ? both : moved, 10 + step)); // by turns
    CHECK(mine.replays() == 9); // all but the first of `both`, whose list was another's in between
    CHECK(mine.failed() == nullptr);
}
