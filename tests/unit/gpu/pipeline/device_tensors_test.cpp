// herring: tensors on a device: whose stream is recorded when, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/device_tensors.hpp"

#include "herring/gpu/pipeline/pcie_staging.hpp"

#include "unit/gpu/pipeline/steps.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <string>

using namespace gpu_test;

namespace {

std::atomic<int> records{0};
// Whose handles stand for another stream in each thread, or do not.
template <bool PerThread> struct counting : gpu::host_runtime {
    using host_runtime::host_runtime;
    static bool per_thread(stream_handle) noexcept { return PerThread; }
    void record(event& mark, stream_handle in) noexcept {
        ++records;
        host_runtime::record(mark, in);
    }
};
// Whose every stream is refused, as a runtime does while the program has an error to read.
std::atomic<bool> refuses{false};
struct refusing : gpu::host_runtime {
    using host_runtime::host_runtime;
    char const* check_stream(stream_handle given) const noexcept {
        return refuses ? "an error is not read" : host_runtime::check_stream(given);
    }
};
template <class Runtime>
using staging =
    reducer<float, update::sum, transport::inproc, gpu::basic_pcie_staging<Runtime, gpu::staging_tuning{}>,
            fusion::balanced_buffer<4096, 1>>;

/// Records that the first two of three tensors of a bucket make, one after the other.
template <class Runtime> std::string of_two() {
    gpu::host_machine machine;
    world alone;
    staging<Runtime> reduce(alone, {{"a", 10}, {"b", 10}, {"c", 10}});
    gpu::host_runtime device(alone);
    gpu::host_runtime::stream in(device);
    std::string made;
    for (std::size_t t = 0; t < 2; ++t) {
        int const before = records;
        reduce.ready(t, in.handle());
        made += std::to_string(records - before);
    }
    reduce.ready(2, in.handle());
    reduce.wait(in.handle());
    return made;
}

} // namespace

TEST_CASE(
    "device_tensors: a stream is recorded once a bucket; one that another thread may call the same at once") {
    CHECK(of_two<counting<false>>() == "00");
    CHECK(of_two<counting<true>>() == "11");
}

TEST_CASE("device_tensors: a capture of a stream that made a tensor ready is refused, and nothing is lost") {
    gpu::host_machine machine;
    world alone;
    staging<gpu::host_runtime> reduce(alone, {{"a", 10}, {"b", 10}});
    gpu::host_runtime device(alone);
    gpu::host_runtime::stream first(device), second(device);
    reduce.ready(0, first.handle());
    first.handle()->capture();
    std::string said = "nothing";
    try {
        reduce.ready(1, second.handle());
    } catch (error const& why) {
        said = why.what();
    }
    CHECK(said.find("bad argument") != std::string::npos);
    CHECK(said.find("let no capture of it begin before `wait`") != std::string::npos);
    (void)first.handle()->captured();
    reduce.ready(1, second.handle());
    reduce.wait(second.handle());
}

TEST_CASE(
    "device_tensors: what is wrong with the call's own stream is told before that of an earlier tensor's") {
    gpu::host_machine machine;
    world alone;
    staging<refusing> reduce(alone, {{"a", 10}, {"b", 10}});
    gpu::host_runtime device(alone);
    gpu::host_runtime::stream first(device), second(device);
    reduce.ready(0, first.handle());
    refuses = true;
    std::string said = "nothing";
    try {
        reduce.ready(1, second.handle());
    } catch (error const& why) {
        said = why.what();
    }
    refuses = false;
    CHECK(said.find("an error is not read") != std::string::npos);
    reduce.ready(1, second.handle());
    reduce.wait(second.handle());
}
