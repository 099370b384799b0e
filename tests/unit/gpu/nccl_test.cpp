// herring: which rules NCCL has, and what is a model of its concept.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/nccl.hpp"

#include "gpu_model/host_nccl.hpp"
#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

using namespace herring;

namespace {
struct sum_of_mine : update::sum {};
struct blocks : gpu::host_nccl {
    using host_nccl::host_nccl;
    void finish() noexcept {}
};
} // namespace

static_assert(gpu::nccl_policy<gpu::host_nccl, gpu::host_runtime>);
static_assert(!gpu::nccl_policy<blocks, gpu::host_runtime>);

TEST_CASE("nccl: the rules that NCCL has, and no other") {
    CHECK(gpu::reduction_of<update::sum> == gpu::reduction::sum);
    CHECK(gpu::reduction_of<update::average> == gpu::reduction::average);
    CHECK(gpu::reduction_of<update::unnamed_average> == gpu::reduction::average);
    CHECK(gpu::reduction_of<update::min> == gpu::reduction::min);
    CHECK(gpu::reduction_of<update::max> == gpu::reduction::max);
    CHECK(gpu::reduction_of<update::product> == gpu::reduction::product);
    CHECK(gpu::reduction_of<update::logical_and> == gpu::reduction::none);
    CHECK(gpu::reduction_of<sum_of_mine> == gpu::reduction::none);
}
