// herring: the pipeline of intra_node::pcie_staging when things go wrong; what it computes is in tests/conformance/gpu_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/pcie_staging.hpp"

#include "unit/gpu/pipeline/steps.hpp"

#include "doctest/doctest.h"

using namespace gpu_test;
using pipeline = gpu::basic_pcie_staging<gpu::host_runtime>;
static_assert(intra_node_policy<pipeline> && pipeline::facts.device_memory && pipeline::facts.host_staging);

TEST_CASE("staging: sound steps, also when a rank leaves with its queues full") { sound_steps<pipeline>(); }

TEST_CASE("staging: any call of the device's may fail") {
    any_call_may_fail<pipeline>();
    any_call_may_fail<gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.piece_bytes = 64_KiB, .graphs = true}>>();
}

TEST_CASE("staging: no device memory, no pinned memory, no machine: an error on every rank, and nothing left "
          "behind") {
    every_rank_is_told_what_there_is_not<pipeline>();
}

TEST_CASE("staging: memory of the host or of another device, and a size that differs, are refused") {
    wrong_memory_is_refused<pipeline>();
}
