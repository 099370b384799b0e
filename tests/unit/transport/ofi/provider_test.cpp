// herring: tests of providers' tags, which need no libfabric.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/ofi/provider.hpp"

#include "doctest/doctest.h"

#include <string_view>

using namespace herring;

namespace {

struct least {
    static constexpr provider_facts facts{};
    static constexpr char const* name = "least";
    static constexpr char const* libfabric = "least;ofi_rxm";
};
struct list : least {
    static constexpr char const* libfabric = "tcp,shm";
};
struct exclusion : least {
    static constexpr char const* libfabric = "^shm";
};
struct nameless {
    [[maybe_unused]] static constexpr provider_facts facts{};
};
struct without_facts {
    static constexpr char const* name = "without_facts";
    static constexpr char const* libfabric = "least";
};
struct stray_fact : least {
    static constexpr bool keeps_order = true;
};

} // namespace

TEST_CASE("provider: what a tag has to say, and what facts{} relies on") {
    static_assert(provider_tag<least>);
    static_assert(!provider_tag<list>);
    static_assert(!provider_tag<exclusion>);
    static_assert(!provider_tag<nameless>);
    static_assert(!provider_tag<without_facts>);
    static_assert(!provider_tag<stray_fact>);
    static_assert(!provider_tag<int>);
    // What is not known is not relied upon.
    CHECK_FALSE(least::facts.keeps_order);
    CHECK_FALSE(least::facts.waits_on_descriptor);
    CHECK(least::facts.registers_memory);
    CHECK((least::facts.unusable == nullptr));
}

TEST_CASE("provider: the tags that come with Herring") {
    CHECK(std::string_view(provider::tcp::libfabric) == "tcp;ofi_rxm");
    CHECK(std::string_view(provider::shm::libfabric) == "shm");
    CHECK(std::string_view(provider::verbs::libfabric) == "verbs;ofi_rxm");
    CHECK(std::string_view(provider::efa::libfabric) == "efa");
    CHECK_FALSE(provider::efa::facts.keeps_order);
    CHECK_FALSE(provider::efa::facts.waits_on_descriptor);
    CHECK(provider::efa::facts.unusable(1u << 16 | 10) != nullptr);
    CHECK(provider::efa::facts.unusable(1u << 16 | 17) == nullptr);
    CHECK_FALSE(provider::efa::facts.device_memory);
    CHECK(provider::on_device<provider::efa>::facts.device_memory);
    // Names are compared between ranks: no two are alike.
    CHECK(std::string_view(provider::tcp::name) != provider::shm::name);
}
