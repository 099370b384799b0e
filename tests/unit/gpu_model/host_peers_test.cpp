// herring: memory and events of other ranks on the model of a device: themselves, if the devices reach each other.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_peers.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring;
using namespace herring::gpu;

TEST_CASE("host_peers: what is imported is the other rank's own") {
    host_machine machine({.workers = 0});
    world alone;
    host_device device(alone);
    std::byte memory[8];
    CHECK(imported_host_memory(device, {memory, 1}, 1).data() == memory);
    host_event const theirs(device, true);
    CHECK(imported_host_event(device, {&theirs.state}, 1).state == theirs.state);
}

TEST_CASE("host_peers: memory of a device out of reach is an error that names the way out") {
    host_machine machine({.workers = 0, .peers = false});
    world alone;
    host_device device(alone);
    std::byte memory[8];
    CHECK(imported_host_memory(device, {memory, 0}, 1).data() == memory); // of its own device
    try {
        imported_host_memory const other(device, {memory, 1}, 1);
        FAIL("it was imported");
    } catch (error const& why) {
        CHECK(std::string(why.what()).find("pcie_staging") != std::string::npos);
    }
}
