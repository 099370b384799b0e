// herring: the pipeline of intra_node::pcie_staging when things go wrong; what it computes is in tests/conformance/gpu_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/staging.hpp"

#include "unit/gpu/pipeline.hpp"

#include "doctest/doctest.h"

using namespace gpu_test;
using pipeline = gpu::basic_pcie_staging<gpu::host_runtime>;
static_assert(intra_node_policy<pipeline> && pipeline::device_memory && pipeline::host_staging);

TEST_CASE("staging: sound steps, also when a rank leaves with its queues full") {
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
        gpu::host_machine machine({.seed = seed});
        CHECK(all_well(run<pipeline>({"a", "a", "b"})));
        CHECK(all_well(run<pipeline>({"a", "a"}, true)));
        CHECK(machine.device_used == 0);
        CHECK(machine.pinned_used == 0);
    }
}

TEST_CASE("staging: any call of the device's may fail") {
    for (std::uint64_t number = 1; number < 120; number = number < 20 ? number + 1 : number + 9) {
        CAPTURE(number);
        CHECK(fail_at<pipeline>(number, {"a", "a"}) == "");
        CHECK(fail_at<pipeline>(number, {"a", "a", "b"}) == "");
    }
}

TEST_CASE("staging: no device memory, no pinned memory, no machine: an error on every rank, and nothing left "
          "behind") {
    {
        gpu::host_machine machine({.device_bytes = 30000});
        for (std::string const& one : run<pipeline>({"a", "a"})) {
            CAPTURE(one);
            CHECK(one.find("device memory") != std::string::npos);
        }
        CHECK(machine.device_used == 0);
    }
    {
        gpu::host_machine machine({.pinned_bytes = 10000});
        for (std::string const& one : run<pipeline>({"a", "b"})) {
            CAPTURE(one);
            CHECK(one.find("pinned memory") != std::string::npos);
        }
        CHECK(machine.device_used == 0);
        CHECK(machine.pinned_used == 0);
    }
    for (std::string const& one : run<pipeline>({"a", "a"}))
        CHECK(one.find("host_machine") != std::string::npos);
}
