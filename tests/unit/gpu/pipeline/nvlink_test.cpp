// herring: the pipeline of intra_node::nvlink when things go wrong; what it computes is in tests/conformance/gpu_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/nvlink.hpp"

#include "unit/gpu/pipeline/steps.hpp"

#include "doctest/doctest.h"

using namespace gpu_test;
using pipeline = gpu::basic_nvlink<gpu::host_runtime, gpu::peer_sums_tuning{.piece_bytes = 64_KiB}>;
static_assert(intra_node_policy<pipeline> && pipeline::facts.device_memory && pipeline::facts.host_staging);

TEST_CASE("peer_sums: sound steps, also when a rank leaves with its queues full") { sound_steps<pipeline>(); }

TEST_CASE("peer_sums: any call of the device's may fail") {
    any_call_may_fail<pipeline>();
    any_call_may_fail<
        gpu::basic_nvlink<gpu::host_runtime, gpu::peer_sums_tuning{.piece_bytes = 64_KiB, .graphs = true}>>();
}

TEST_CASE(
    "peer_sums: no device memory, no pinned memory, no machine: an error on every rank, and nothing left "
    "behind") {
    every_rank_is_told_what_there_is_not<pipeline>();
}

TEST_CASE("peer_sums: memory of the host or of another device, and a size that differs, are refused") {
    wrong_memory_is_refused<pipeline>();
}

TEST_CASE("peer_sums: devices that do not reach each other: the pair is named, and the way out") {
    gpu::host_machine machine({.peers = false});
    std::vector<std::string> const ended = run<pipeline>({"a", "a", "b"});
    for (std::string const& one : ended) {
        CAPTURE(one);
        CHECK(one.find("construction: unsupported (rank 1): ") != std::string::npos);
        CHECK(one.find("cannot reach") != std::string::npos);
        CHECK(one.find("pcie_staging") != std::string::npos);
    }
    for (int const r : {0, 1, 2}) { // each of the two, and the third, is told of both
        CAPTURE(ended[static_cast<std::size_t>(r)]);
        CHECK(ended[static_cast<std::size_t>(r)].find("rank 0") != std::string::npos);
        CHECK(ended[static_cast<std::size_t>(r)].find("rank 1") != std::string::npos);
    }
    CHECK(machine.device_used == 0);
    CHECK(all_well(run<pipeline>({"a", "b"}))); // one rank a node: nobody to reach
}
