// herring: tests of transport/transport.hpp: the concept takes a model and refuses what lacks a clause.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/transport.hpp"

#include "doctest/doctest.h"

using namespace herring;

namespace {
struct model {
    using axis = axes::transport;
    static constexpr char const* name = "model";
    static constexpr std::size_t max_message = 1 << 20;
    static constexpr int tag_bits = 64;
    static constexpr bool keeps_order = true;
    static constexpr bool registers_memory = false;
    static constexpr bool device_memory = false;
    static constexpr exchange_tuning tuning{};
    model(world&, transport_needs const&) {}
    bool post_send(peer_id, std::uint64_t, std::span<std::byte const>, std::uint64_t) noexcept {
        return false;
    }
    bool post_receive(peer_id, std::uint64_t, std::span<std::byte>, std::uint64_t) noexcept { return false; }
    template <class OnCompletion> std::size_t poll(OnCompletion&&) noexcept { return 0; }
    void wait(time_point) noexcept {}
    void wake() noexcept {}
    void register_memory(std::span<std::byte>) {}
    char const* describe(peer_id) const { return ""; }
};
struct forgets_noexcept : model {
    using model::model;
    bool post_send(peer_id, std::uint64_t, std::span<std::byte const>, std::uint64_t) { return false; }
};
struct takes_ranks : model {
    using model::model;
    bool post_send(int, std::uint64_t, std::span<std::byte const>, std::uint64_t) noexcept { return false; }
};
struct receives_into_const : model {
    using model::model;
    bool post_receive(peer_id, std::uint64_t, std::span<int>, std::uint64_t) noexcept { return false; }
};
} // namespace

TEST_CASE("transport: the concept") {
    CHECK(transport_policy<model>);
    CHECK_FALSE(transport_policy<forgets_noexcept>);
    CHECK_FALSE(transport_policy<takes_ranks>);
    CHECK_FALSE(transport_policy<receives_into_const>);
    CHECK(check<axes::transport, model>::value);
}

TEST_CASE("transport: carried bits are 32, below the kind and above the number") {
    CHECK(carried_bits == 0x0fff'ffff'f000'0000u);
}
