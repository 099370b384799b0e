// herring: tests of plan/route_limits.hpp by example; tests/plan holds costs of messages against them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/route_limits.hpp"

#include "doctest/doctest.h"

#include <cstddef>

using namespace herring;
using herring::detail::route_of;

namespace route_limits_test {

/// Elements of 4 bytes on so many nodes of one rank.
route_limits of(int nodes, exchange_tuning const& tuning) {
    route_limits limits;
    limits.element_bytes = limits.parts.element_bytes = 4;
    limits.line_elements = 16;
    limits.tuning = tuning;
    limits.nodes = nodes;
    for (int n = 0; n < nodes; ++n) {
        limits.roles.contributors.push_back(n);
        limits.roles.servers.push_back(n);
    }
    return limits;
}
constexpr exchange_tuning sizes{.chunk_bytes = 4096,
                                .window_bytes = 8192,
                                .one_hop_bytes = 256,
                                .one_hop_bytes_two_nodes = 1024,
                                .local_chunk_bytes = 4096,
                                .mailbox_bytes = 128};

} // namespace route_limits_test

using namespace route_limits_test;

TEST_CASE("route_limits: by one hop up to a size, which two nodes have larger") {
    CHECK(of(2, sizes).one_hop_limit() == 1024);
    CHECK(of(3, sizes).one_hop_limit() == 256);
    CHECK(route_of(1024, of(2, sizes)) == route::one_hop);
    CHECK(route_of(1025, of(2, sizes)) == route::two_hop);
    CHECK(of(2, sizes).hop_slot_elements() == 256);
    CHECK(of(2, sizes).slot_elements() == 1024);
    CHECK(of(2, sizes).unslotted_elements() == 2048);
}

TEST_CASE("route_limits: where a node has one role alone, all take two hops, and small buckets one server") {
    route_limits served = of(3, sizes);
    served.roles.servers.pop_back();
    CHECK_FALSE(served.all_have_both_roles());
    CHECK_FALSE(served.contributors_serve());
    CHECK(served.one_hop_limit() == 0);
    CHECK(served.whole_limit() == 256);
    CHECK(route_of(8, served, true) == route::two_hop);
    CHECK(of(3, sizes).whole_limit() == 0);
}

TEST_CASE(
    "route_limits: small blocks to or from a root take one server where that saves more than a hop costs") {
    exchange_tuning costs = sizes;
    CHECK(of(3, costs).served_blocks_limit() == 0);
    costs.message_ns = 5;
    costs.latency_ns = 10;
    CHECK(of(2, costs).served_blocks_limit() == 0);
    CHECK(of(4, costs).served_blocks_limit() == 0);
    CHECK(of(5, costs).served_blocks_limit() == of(5, costs).slot_elements() * 4);
    costs.chunk_bytes = 1 << 20;
    CHECK(of(5, costs).served_blocks_limit() == 32'768);
    route_limits shared = of(2, sizes); // two hops, a message for each rank, are the other way
    shared.largest_node = 2;
    CHECK(shared.served_blocks_limit() == shared.slot_elements() * 4);
    shared.nodes = 1;
    CHECK(shared.served_blocks_limit() == 0);
}

TEST_CASE("route_limits: by mailbox where three or more ranks share the one node") {
    route_limits alone = of(1, sizes);
    for (int const ranks : {1, 2, 3}) {
        alone.largest_node = ranks;
        CHECK(route_of(128, alone) == (ranks > 2 ? route::mailbox : route::local));
        CHECK(route_of(129, alone) == route::local);
    }
}

TEST_CASE("route_limits: by dissemination where the messages that it saves cost more than its rounds") {
    exchange_tuning many = sizes;
    many.dissemination_bytes = 64;
    many.message_ns = 1000;
    many.latency_ns = 100;
    route_limits const five = of(5, many);
    CHECK(five.dissemination_rounds() == 3);
    CHECK(five.dissemination_message_parts() == 2);
    CHECK(five.dissemination_limit() == 64);
    CHECK(five.dissemination_message_bytes() == 2 * 64);
    CHECK(five.dissemination_buffer_bytes() == 5 * 64);
    CHECK(route_of(64, five, true) == route::dissemination);
    CHECK(route_of(64, five) == route::one_hop); // divided among owners: by the size of their parts
    many.latency_ns = 1001;
    CHECK(of(5, many).dissemination_limit() == 0);
    CHECK(of(2, many).dissemination_limit() == 0);
    route_limits uneven = five;
    uneven.even = false;
    CHECK(uneven.dissemination_limit() == 0);
}

TEST_CASE("route_limits: buckets of bytes fit the memory of elements") {
    exchange_tuning uneven = sizes;
    uneven.chunk_bytes = 4100;
    uneven.one_hop_bytes = 257;
    uneven.one_hop_bytes_two_nodes = 1030;
    for (std::size_t const each : {std::size_t{1}, std::size_t{4}, std::size_t{24}, std::size_t{256}}) {
        CAPTURE(each);
        route_limits elements = of(2, uneven);
        elements.element_bytes = each;
        elements.parts = {each, part_kind::stored};
        elements.line_elements = each > 64 ? 1 : each == 24 ? 8 : 64 / each;
        route_limits const bytes = detail::in_bytes(elements);
        CHECK(bytes.slot_elements() <= elements.slot_elements() * each);
        CHECK(bytes.slot_elements() + each > uneven.chunk_bytes);
        CHECK(bytes.hop_slot_elements() <= elements.hop_slot_elements() * each);
        CHECK(bytes.unslotted_elements() <= elements.unslotted_elements() * each);
        CHECK(bytes.line_elements == 64);
        CHECK(bytes.window() >= elements.window());
    }
    exchange_tuning many = sizes;
    many.dissemination_bytes = 64;
    many.message_ns = 1000;
    many.latency_ns = 100;
    many.max_message_bytes = 100;
    route_limits const five = of(5, many), bytes = detail::in_bytes(five);
    CHECK(five.dissemination_limit() == 48);
    CHECK(bytes.dissemination_limit() == 48);
    CHECK(bytes.dissemination_buffer_bytes() == five.dissemination_buffer_bytes());
    route_limits halved = five; // parts of an element's accumulator, of half its size
    halved.element_bytes = 8;
    halved.parts = {4, part_kind::accumulator};
    CHECK(detail::in_bytes(halved).dissemination_buffer_bytes() <= halved.dissemination_buffer_bytes());
}

TEST_CASE("route_limits: shares are equal or not") {
    route_limits all = of(3, sizes);
    CHECK(all.has_equal_shares());
    all.roles.shares = {4, 4, 4};
    CHECK(all.has_equal_shares());
    all.roles.shares = {4, 4, 5};
    CHECK(!all.has_equal_shares());
}

TEST_CASE("route_limits: a window has two chunks at least") {
    CHECK(of(2, sizes).window() == 2);
    CHECK(of(2, {.chunk_bytes = 1024, .window_bytes = 8192}).window() == 8);
    CHECK(of(2, {.chunk_bytes = 1 << 20, .window_bytes = 1}).window() == 2);
    CHECK(of(2, {.chunk_bytes = 0}).window() == 2);
}
