// herring: the model of a machine with devices: whose memory is whose, and which call fails.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_machine.hpp"

#include "doctest/doctest.h"

#include <cstddef>

using herring::gpu::host_machine;

TEST_CASE("host_machine: there is one at a time, and memory has an owner while it is entered") {
    CHECK(host_machine::current() == nullptr);
    {
        host_machine machine({.workers = 0});
        CHECK(host_machine::current() == &machine);
        std::byte memory[64];
        machine.enter(memory, sizeof memory, 3, true);
        CHECK(machine.owner(memory) == 3);
        CHECK(machine.owner(memory + 63) == 3);
        CHECK(machine.owner(memory + 64) == -1);
        machine.erase(memory);
        CHECK(machine.owner(memory) == -1);
    }
    CHECK(host_machine::current() == nullptr);
}

TEST_CASE("host_machine: calls of the rank that is to fail are counted, and fail from the number on") {
    host_machine machine({.workers = 0, .fail_at = 2, .fail_rank = 1});
    CHECK_FALSE(machine.fails(0));
    CHECK_FALSE(machine.fails(1));
    CHECK(machine.fails(1));
    CHECK_FALSE(machine.fails(0));
    CHECK(machine.calls() == 2);
}

TEST_CASE("host_machine: queues get turns until they are dropped") {
    host_machine machine({.workers = 0});
    CHECK_FALSE(machine.turn());
    auto const queue = machine.make_queue();
    int ran = 0;
    queue->put({.what = herring::gpu::detail::host_work::kind::call,
                .call = [](void* to) { ++*static_cast<int*>(to); },
                .argument = &ran});
    machine.drain(*queue);
    CHECK(ran == 1);
    machine.drop(queue);
    CHECK_FALSE(machine.turn());
}
