// herring: a device that does not come is blamed on its own rank, by every rank.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_nccl.hpp"
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/nccl.hpp"
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace herring;

namespace {

using over_nccl = gpu::basic_nccl<gpu::host_runtime, gpu::host_nccl>;

/// What every rank says where rank 1's stream holds a kernel of the program's that ends when all have given up.
template <class IntraNode>
std::vector<std::string> with_a_late_device(std::vector<std::string> const& nodes) {
    struct gate {
        std::atomic<int> given_up{0};
        int ranks = 0;
        static void kernel(void* self) {
            auto& g = *static_cast<gate*>(self);
            auto const until = clock::now() + std::chrono::seconds(20);
            while (g.given_up.load() < g.ranks && clock::now() < until)
                std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the core is for the ranks
        }
    } late;
    late.ranks = static_cast<int>(nodes.size());
    gpu::host_machine machine({.workers = 8});
    launch_options options;
    options.nodes = nodes;
    std::vector<std::string> said(nodes.size());
    launch_threads(
        late.ranks,
        [&](world& w) {
            reducer<float, transport::inproc, IntraNode> reduce(w, {{"a", 100'000}});
            gpu::host_runtime device(w);
            gpu::host_runtime::stream own(device);
            if (w.rank() == 1) gpu::host_runtime::launch(own.handle(), &gate::kernel, &late);
            reduce.ready(0, own.handle());
            status const ended = reduce.wait(own.handle(), std::chrono::seconds(1));
            said[static_cast<std::size_t>(w.rank())] = ended.ok() ? "nothing" : ended.why().message();
            late.given_up.fetch_add(1);
            return 0;
        },
        options);
    return said;
}

} // namespace

TEST_CASE_TEMPLATE("gpu: a deadline is a time, or from now on", IntraNode,
                   gpu::basic_pcie_staging<gpu::host_runtime>, gpu::basic_nvlink<gpu::host_runtime>,
                   over_nccl) {
    gpu::host_machine machine({.workers = 2});
    CHECK_NOTHROW(launch_threads(2, [](world& w) {
        reducer<float, transport::inproc, IntraNode, update::sum> reduce(w, {{"a", 1000}});
        gpu::host_runtime device(w);
        gpu::host_runtime::memory memory(device, 100 * sizeof(float)); // goes after the stream has ended
        gpu::host_runtime::stream own(device);
        device_span<float> const buffer(reinterpret_cast<float*>(memory.data()), 100);
        using namespace std::chrono_literals;
        for (int step = 0; step < 2; ++step) {
            reduce.ready(0, own.handle());
            (step == 0 ? reduce.wait(own.handle(), 20s) : reduce.wait(own.handle(), clock::now() + 20s))
                .value();
            (step == 0 ? reduce.all_reduce(buffer, own.handle(), 20s)
                       : reduce.all_reduce(buffer, own.handle(), clock::now() + 20s))
                .value();
        }
    }));
}

TEST_CASE_TEMPLATE("gpu: a device that is late is blamed on its rank", IntraNode,
                   gpu::basic_pcie_staging<gpu::host_runtime>, gpu::basic_nvlink<gpu::host_runtime>,
                   over_nccl) {
    bool const alone_ends = IntraNode::facts.sums_on_device;
    for (std::vector<std::string> const& nodes :
         {std::vector<std::string>{"a", "a"}, {"a", "a", "b", "b"}, {"a", "a", "a", "b"}}) {
        // With these on one node the host waits for no device.
        if (alone_ends && nodes.size() == 2) continue;
        for (std::string const& text : with_a_late_device<IntraNode>(nodes)) {
            CAPTURE(nodes.size());
            CHECK_MESSAGE(text.find("timeout (rank 1)") != std::string::npos, text);
        }
    }
}
