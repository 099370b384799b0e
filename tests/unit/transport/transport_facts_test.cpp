// herring: tests of transport/transport_facts.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/transport_facts.hpp"

#include "doctest/doctest.h"

using herring::transport_facts;

TEST_CASE("transport_facts: the defaults promise nothing that a transport of host memory may lack") {
    constexpr transport_facts usual{};
    CHECK_FALSE(usual.keeps_order);
    CHECK_FALSE(usual.registers_memory);
    CHECK_FALSE(usual.device_memory);
    CHECK_FALSE(usual.abandons);
    CHECK_FALSE(usual.runs_handlers);
    CHECK(usual.tag_bits == 64);
    CHECK(usual.tuning == herring::exchange_tuning{});
}

TEST_CASE("transport_facts: one host has the general sizes, unless it has its own") {
    constexpr transport_facts one{.tuning = {.chunk_bytes = 4096}};
    CHECK(one.same_host_tuning.chunk_bytes == 4096);
    constexpr transport_facts two{.tuning = {.chunk_bytes = 4096}, .same_host_tuning = {.chunk_bytes = 8192}};
    CHECK(two.tuning.chunk_bytes == 4096);
    CHECK(two.same_host_tuning.chunk_bytes == 8192);
}
