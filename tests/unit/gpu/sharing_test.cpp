// herring: ranks that share a device are allowed, and told of once a device.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/sharing.hpp"

#include "herring/gpu/host_runtime.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

using namespace herring;

TEST_CASE("sharing: one line a shared device, by the first rank of it") {
    struct {
        std::vector<std::string> nodes;
        int devices, lines;
    } const cases[] = {{{"a"}, 1, 0},
                       {{"a", "a"}, 2, 0},
                       {{"a", "a"}, 1, 1},
                       {{"a", "a", "a"}, 2, 1},
                       {{"a", "b"}, 1, 0},
                       {{"a", "b", "a", "b"}, 1, 2},
                       {{"a", "a", "a", "a"}, 2, 2},
                       {{"a", "a", "a"}, 3, 0}};
    for (auto const& one : cases) {
        CAPTURE(one.lines);
        gpu::host_machine machine({.workers = 0, .devices = one.devices});
        launch_options options;
        options.nodes = one.nodes;
        launch_threads(
            static_cast<int>(one.nodes.size()), [](world& ranks) { gpu::host_runtime const device(ranks); },
            options);
        CHECK(machine.shared_devices == one.lines);
    }
}
