// herring: tests of providers' tags, which need no libfabric.
// SPDX-License-Identifier: Apache-2.0
#include "herring/provider.hpp"

#include "doctest/doctest.h"

#include <string_view>

using namespace herring;

namespace {

struct least : provider::basic {
    static constexpr char const* name = "least";
    static constexpr char const* libfabric = "least;ofi_rxm";
};
struct list : least {
    static constexpr char const* libfabric = "tcp,shm";
};
struct exclusion : least {
    static constexpr char const* libfabric = "^shm";
};
struct nameless : provider::basic {};
struct throws : least {
    static constexpr char const* unusable(std::uint32_t) { return nullptr; }
};

} // namespace

TEST_CASE("provider: what a tag has to say, and what it has from basic") {
    static_assert(provider_tag<least>);
    static_assert(!provider_tag<list>);
    static_assert(!provider_tag<exclusion>);
    static_assert(!provider_tag<nameless>);
    static_assert(!provider_tag<throws>);
    static_assert(!provider_tag<int>);
    // What is not known is not relied upon.
    CHECK_FALSE(least::keeps_order);
    CHECK_FALSE(least::waits_on_descriptor);
    CHECK(least::registers_memory);
    CHECK(least::unusable(0) == nullptr);
}

TEST_CASE("provider: the tags that come with Herring") {
    CHECK(std::string_view(provider::tcp::libfabric) == "tcp;ofi_rxm");
    CHECK(std::string_view(provider::shm::libfabric) == "shm");
    CHECK(std::string_view(provider::verbs::libfabric) == "verbs;ofi_rxm");
    CHECK(std::string_view(provider::efa::libfabric) == "efa");
    CHECK_FALSE(provider::efa::keeps_order);
    CHECK_FALSE(provider::efa::waits_on_descriptor);
    CHECK(provider::efa::unusable(1u << 16 | 10) != nullptr);
    CHECK(provider::efa::unusable(1u << 16 | 17) == nullptr);
    CHECK_FALSE(provider::efa::device_memory);
    CHECK(provider::on_device<provider::efa>::device_memory);
    // Names are compared between ranks: no two are alike.
    CHECK(std::string_view(provider::tcp::name) != provider::shm::name);
}
