// herring: tests of transport/transport.hpp: the concept takes a model and refuses what lacks a clause.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/transport.hpp"

#include "doctest/doctest.h"

using namespace herring;

namespace {
struct model {
    using axis = axes::transport;
    static constexpr char const* name = "model";
    static constexpr transport_facts facts{.max_message = 1 << 20};
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
struct stray_fact : model {
    using model::model;
    static constexpr bool device_memory = true;
    void register_device_memory(std::span<std::byte>, int) {}
};
struct promises_devices : model {
    using model::model;
    static constexpr transport_facts facts{.device_memory = true};
};
struct reaches_devices : promises_devices {
    using promises_devices::promises_devices;
    void register_device_memory(std::span<std::byte>, int) {}
};
struct promises_to_abandon : model {
    using model::model;
    static constexpr transport_facts facts{.abandons = true};
};
struct abandons : promises_to_abandon {
    using promises_to_abandon::promises_to_abandon;
    void abandon() noexcept {}
};
struct abandons_unasked : model {
    using model::model;
    void abandon() noexcept {}
};
struct promises_handlers : model {
    using model::model;
    static constexpr transport_facts facts{.runs_handlers = true};
    bool runs_handlers() const noexcept { return true; }
};
struct hands_over_exceptions : promises_handlers {
    using promises_handlers::promises_handlers;
    bool has_exception() const noexcept { return false; }
    std::exception_ptr take_exception() noexcept { return nullptr; }
};
struct promises_envelopes : model {
    using model::model;
    static constexpr transport_facts facts{.envelope_bytes = 12};
};
struct carries_envelopes : promises_envelopes {
    using model::post_send;
    using promises_envelopes::promises_envelopes;
    bool post_send(peer_id, std::uint64_t, std::span<std::byte const>, std::span<std::byte const>,
                   std::uint64_t) noexcept {
        return false;
    }
};
struct carries_envelopes_unasked : carries_envelopes {
    using carries_envelopes::carries_envelopes;
    static constexpr transport_facts facts{};
};
struct carries_too_large_ones : carries_envelopes {
    using carries_envelopes::carries_envelopes;
    static constexpr transport_facts facts{.envelope_bytes = 33};
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

TEST_CASE("transport: what the facts promise is there, and nothing else is") {
    CHECK_FALSE(transport_policy<stray_fact>);
    CHECK_FALSE(transport_policy<promises_devices>);
    CHECK(transport_policy<reaches_devices>);
    CHECK_FALSE(transport_policy<promises_to_abandon>);
    CHECK(transport_policy<abandons>);
    CHECK_FALSE(transport_policy<abandons_unasked>);
    CHECK_FALSE(transport_policy<promises_handlers>);
    CHECK(transport_policy<hands_over_exceptions>);
    CHECK_FALSE(transport_policy<promises_envelopes>);
    CHECK(transport_policy<carries_envelopes>);
    CHECK_FALSE(transport_policy<carries_envelopes_unasked>);
    CHECK_FALSE(transport_policy<carries_too_large_ones>);
}

TEST_CASE("transport: carried bits are 32, below the kind and above the number") {
    CHECK(carried_bits == 0x0fff'ffff'f000'0000u);
}

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
