// herring: the trial of devices that are said to reach each other: whose writes and reads are lost is named, on every rank.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/peer_memory.hpp"

#include "herring/gpu/pipeline/nvlink.hpp"

#include "unit/gpu/pipeline/steps.hpp"

#include "doctest/doctest.h"

using namespace gpu_test;

namespace {

// What rank `Who` copies to the memory of another device, or with `Reads` from there, is lost, and no call fails.
template <int Who, bool Reads> struct lossy : gpu::host_runtime {
    using host_runtime::host_runtime;
    void list(batch& many, std::size_t at, std::span<gpu::copy_item const> copies) noexcept {
        std::vector<gpu::copy_item> some(copies.begin(), copies.end());
        for (gpu::copy_item& one : some)
            if (rank() == Who && machine().owner(Reads ? one.from : one.to) != number()) one.bytes = 0;
        host_runtime::list(many, at, some);
    }
};
template <int Who, bool Reads> std::vector<std::string> with_losses() {
    gpu::host_machine machine({.devices = 3});
    std::vector<std::string> ended =
        run<gpu::basic_nvlink<lossy<Who, Reads>, gpu::peer_sums_tuning{.piece_bytes = 64_KiB}>>(
            {"a", "a", "a"});
    CHECK(machine.device_used == 0);
    return ended;
}

} // namespace

TEST_CASE("peer_trial: writes that are lost: every rank is told whose, and what to look for") {
    for (std::string const& one : with_losses<1, false>()) {
        CAPTURE(one);
        CHECK(one.find("construction: unsupported") != std::string::npos);
        CHECK(one.find("the device of rank 1 does not write the memory of rank 0's") != std::string::npos);
        CHECK(one.find("IOMMU") != std::string::npos);
        CHECK(one.find("pcie_staging") != std::string::npos);
    }
}

TEST_CASE("peer_trial: reads that are lost") {
    for (std::string const& one : with_losses<2, true>()) {
        CAPTURE(one);
        CHECK(one.find("the device of rank 2 does not read the memory of rank 0's") != std::string::npos);
    }
}

TEST_CASE("peer_trial: devices that reach each other: the tensors are zero as before") {
    gpu::host_machine machine({.devices = 2});
    static int other_than_zero[2];
    launch_threads(2, [](world& ranks) {
        reducer<float, update::sum, transport::inproc, gpu::basic_nvlink<gpu::host_runtime>> reduce(
            ranks, {{"a", 1000}});
        int& count = other_than_zero[ranks.rank()];
        count = 0;
        for (std::size_t i = 0; i < 1000; ++i) count += reduce.tensor(0).data()[i] != 0;
        ranks.barrier();
        return 0;
    });
    CHECK(other_than_zero[0] == 0);
    CHECK(other_than_zero[1] == 0);
}
