// herring: tests of engine/node_memory.hpp: tensors in memory of the host ask nothing of an engine.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/node_memory.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/intra_node.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <type_traits>

namespace {

struct host_node {
    static constexpr herring::intra_node_facts facts{};
};
struct no_transport {}; // nothing is asked of it
using memory = herring::detail::node_memory<host_node, no_transport>;

static_assert(std::is_empty_v<memory> && std::is_trivially_copyable_v<memory>);
static_assert(!memory::parts_on_device);

} // namespace

TEST_CASE(
    "node_memory: host memory is loaded as soon as it is submitted, and is what the transport accesses") {
    host_node node;
    memory of(node);
    CHECK(of.failed() == nullptr);
    CHECK(of.is_loaded(0, 1));
    herring::execution e;
    of.place_sum(e);
    CHECK(e.device_sum == nullptr); // the host sums
    std::array<std::byte, 8> bytes{};
    CHECK(of.for_transport(std::span<std::byte>(bytes)).data() == bytes.data());
    CHECK(of.for_transport(std::span<std::byte const>(bytes)).size() == bytes.size());
    herring::time_point const until = herring::clock::now() + std::chrono::seconds(3);
    CHECK(of.nap(until) == until); // no device would be looked after meanwhile
}
