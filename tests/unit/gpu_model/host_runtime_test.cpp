// herring: the model of a device does work late, in the order of queues and events, and no other.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <cstring>

using namespace herring;
using gpu::host_machine;
using gpu::host_runtime;

TEST_CASE("host_runtime: nothing is done before a turn, and waits hold") {
    host_machine machine({.workers = 0});
    world alone;
    host_runtime device(alone);
    host_runtime::stream first(device), second(device);
    host_runtime::event mark(device, false);
    host_runtime::memory memory(device, 64);
    CHECK(machine.device_used == 64);
    alignas(16) std::byte host[64] = {};
    host[3] = std::byte{7};
    CHECK(device.done(mark)); // never recorded

    device.to_device(first.handle(), memory.data(), host, sizeof host);
    device.record(mark, first.handle());
    device.wait(second.handle(), mark);
    std::byte back[64] = {};
    device.to_host(second.handle(), back, memory.data(), sizeof back);
    CHECK(memory.data()[3] == std::byte{0});
    CHECK_FALSE(device.done(mark));
    for (int i = 0; i < 1000 && !device.done(mark); ++i) machine.turn();
    CHECK(device.done(mark));
    CHECK(memory.data()[3] == std::byte{7});
    for (int i = 0; i < 1000 && back[3] == std::byte{0}; ++i) machine.turn();
    CHECK(back[3] == std::byte{7});

    // A wait is for the record that was last when it was put there, not for a later one.
    device.wait(second.handle(), mark);
    device.record(mark, first.handle());
    static int ran = 0;
    ran = 0;
    host_runtime::launch(
        second.handle(), [](void*) { ++ran; }, nullptr);
    for (int i = 0; i < 1000 && ran == 0; ++i) machine.turn();
    CHECK(ran == 1);
}

TEST_CASE("host_runtime: a failure stays, and later calls do nothing") {
    host_machine machine({.workers = 0, .fail_at = 2});
    world alone;
    host_runtime device(alone);
    host_runtime::stream in(device);
    host_runtime::event mark(device, false);
    device.record(mark, in.handle());
    CHECK(device.failed() == nullptr);
    device.wait(in.handle(), mark);
    REQUIRE(device.failed() != nullptr);
    CHECK(device.failed()->what == errc::device);
    CHECK_FALSE(device.done(mark));
}

TEST_CASE("host_runtime: memory that there is not, and no machine") {
    world alone;
    CHECK_THROWS_AS(host_runtime{alone}, error);
    host_machine machine({.workers = 0, .device_bytes = 100, .pinned_bytes = 100});
    host_runtime device(alone);
    {
        host_runtime::memory some(device, 60);
        CHECK_THROWS_AS(host_runtime::memory(device, 60), error);
        std::byte host[200];
        CHECK_THROWS_AS(host_runtime::pinned(device, host), error);
    }
    CHECK(machine.device_used == 0);
    CHECK(machine.pinned_used == 0);
}
