// herring: tests of intra_node/intra_node.hpp: the concept takes a model and refuses what lacks a clause; none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/intra_node/intra_node.hpp"

#include "doctest/doctest.h"

#include <algorithm>

using namespace herring;

namespace {
struct model {
    using axis = axes::intra_node;
    static constexpr char const* name = "model";
    static constexpr intra_node_facts facts{};
    model(world&, std::size_t) {}
    std::byte* memory() noexcept { return nullptr; }
    std::byte* peer(int, std::byte* own) noexcept { return own; }
    void arrive(std::uint64_t) noexcept {}
    int first_not_arrived(std::uint64_t) noexcept { return -1; }
    void finish(std::uint64_t, bool) noexcept {}
    int first_not_finished(std::uint64_t) noexcept { return -1; }
    bool has_left(int) noexcept { return false; }
    std::uint32_t listen() noexcept { return 0; }
    void sleep(std::uint32_t, time_point) noexcept {}
    void wake() noexcept {}
};
struct forgets_noexcept : model {
    using model::model;
    int first_not_arrived(std::uint64_t) { return -1; }
};
struct states_a_fact_beside_them : model {
    using model::model;
    static constexpr bool joins_ranks = false;
};
struct on_devices_without_functions : model {
    using model::model;
    static constexpr intra_node_facts facts{.device_memory = true};
};
struct sums_on_no_device : model {
    using model::model;
    static constexpr intra_node_facts facts{.sums_on_device = true};
};
struct wrong_axis : model {
    using model::model;
    using axis = axes::transport;
};
} // namespace

TEST_CASE("intra_node: the concept") {
    CHECK(intra_node_policy<model>);
    CHECK_FALSE(intra_node_policy<forgets_noexcept>);
    CHECK_FALSE(intra_node_policy<wrong_axis>);
    CHECK_FALSE(intra_node_policy<states_a_fact_beside_them>);
    CHECK_FALSE(intra_node_policy<on_devices_without_functions>);
    CHECK_FALSE(intra_node_policy<sums_on_no_device>);
    CHECK(check<axes::intra_node, model>::value);
}

TEST_CASE("none: zeroed memory of one's own, and nobody to wait for") {
    herring::world alone;
    herring::intra_node::none node(alone, 10'000);
    REQUIRE(node.memory() != nullptr);
    CHECK(std::all_of(node.memory(), node.memory() + 10'000, [](std::byte b) { return b == std::byte{0}; }));
    CHECK(node.peer(0, node.memory() + 5) == node.memory() + 5);
    CHECK(node.first_not_arrived(0) == -1);
    CHECK(node.first_not_finished(7) == -1);
    CHECK_FALSE(node.has_left(0));
    herring::intra_node::none empty(alone, 0);
    CHECK(empty.memory() == nullptr);
}
