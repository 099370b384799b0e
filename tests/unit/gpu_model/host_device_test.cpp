// herring: the model of a device: which it is, and that its first error stays.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_device.hpp"

#include "doctest/doctest.h"

#include <string_view>

using namespace herring;
using gpu::host_device;
using gpu::host_machine;

TEST_CASE("host_device: there is none without a machine") {
    world alone;
    CHECK_THROWS_AS(host_device{alone}, error);
}

TEST_CASE("host_device: the first failure stays, with the rank and the device") {
    host_machine machine({.workers = 0});
    world alone;
    host_device device(alone);
    CHECK(device.number() == 0);
    CHECK_FALSE(device.refused());
    CHECK(device.failed() == nullptr);
    device.refuse("one");
    device.refuse("two");
    REQUIRE(device.failed() != nullptr);
    CHECK(std::string_view(device.failed()->text) == "device 0: one");
    CHECK(device.failed()->reporter == 0);
    CHECK(device.refused());
}
