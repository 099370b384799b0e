// herring: what a rank owns on the model of a device: counted while it is there, and gone with its owner.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_objects.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <span>

using namespace herring;
using namespace herring::gpu;

TEST_CASE("host_objects: memory is zeroed, has an owner, and is given back; so are locked pages") {
    host_machine machine({.workers = 0, .device_bytes = 100, .pinned_bytes = 100});
    world alone;
    host_device device(alone);
    std::byte host[200];
    std::span<std::byte> const pages(host, 80);
    {
        host_memory const memory(device, 64);
        CHECK(memory.data()[63] == std::byte{0});
        CHECK(machine.owner(memory.data()) == 0);
        CHECK(machine.device_used == 64);
        CHECK_THROWS_AS(host_memory(device, 64), error);
        CHECK(machine.device_used == 64);
        host_pinned const locked(device, pages);
        CHECK(locked.holds(host, 80));
        CHECK_FALSE(locked.holds(host + 1, 80));
        CHECK_THROWS_AS(host_pinned(device, pages), error);
        CHECK(machine.pinned_used == 80);
    }
    CHECK(machine.device_used == 0);
    CHECK(machine.pinned_used == 0);
}

TEST_CASE("host_objects: a stream ends with what is in it") {
    host_machine machine({.workers = 0});
    world alone;
    host_device device(alone);
    int ran = 0;
    {
        host_stream const stream(device);
        stream.handle()->put({.what = gpu::detail::host_work::kind::call,
                              .call = [](void* to) { ++*static_cast<int*>(to); },
                              .argument = &ran});
        CHECK(ran == 0);
    }
    CHECK(ran == 1);
}
