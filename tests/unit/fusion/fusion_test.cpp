// herring: tests of fusion/fusion.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/fusion/fusion.hpp"

#include "doctest/doctest.h"

#include <string_view>
#include <type_traits>

namespace {
struct pairs {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "pairs";
    static constexpr bool closes(herring::fusion_state const& state) noexcept {
        return state.bucket_tensors == 2;
    }
};
struct may_throw {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "may_throw";
    static bool closes(herring::fusion_state const&) { return true; }
};
struct counts {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "counts";
    static int closes(herring::fusion_state const&) noexcept { return 1; }
};
struct nameless {
    using axis = herring::axes::fusion;
    static bool closes(herring::fusion_state const&) noexcept { return true; }
};
struct elsewhere : pairs {
    using axis = herring::axes::sharding;
};
} // namespace

TEST_CASE("fusion: the concept") {
    CHECK(herring::fusion_policy<pairs>);
    CHECK_FALSE(herring::fusion_policy<may_throw>);
    CHECK_FALSE(herring::fusion_policy<counts>);
    CHECK_FALSE(herring::fusion_policy<nameless>);
    CHECK_FALSE(herring::fusion_policy<elsewhere>);
    static_assert(pairs::closes({.bucket_tensors = 2}) && !pairs::closes({.bucket_tensors = 1}));
}

using herring::fusion::balanced_buffer;
using namespace herring::literals;

TEST_CASE("balanced_buffer: closes at its size, not a byte before") {
    using buffer = balanced_buffer<1000>;
    static_assert(!buffer::closes({.bucket_bytes = 999}));
    static_assert(buffer::closes({.bucket_bytes = 1000}));
    static_assert(buffer::closes({.bucket_bytes = 1'000'000}));
    static_assert(!buffer::closes({.bucket_bytes = 0, .bucket_tensors = 100}));
    CHECK(balanced_buffer<>::bytes == 25_MiB);
    CHECK(buffer::name == std::string_view("balanced_buffer"));
    CHECK(std::is_empty_v<buffer>);
}

TEST_CASE(
    "balanced_buffer: grows with servers and local ranks, so that no shard's slice is below the minimum") {
    using buffer = balanced_buffer<1_MiB, 64_KiB>;
    for (int servers = 1; servers <= 64; ++servers)
        for (int local = 1; local <= 16; ++local) {
            std::size_t const all = static_cast<std::size_t>(servers) * static_cast<std::size_t>(local);
            std::size_t const at = buffer::threshold(servers, local);
            CHECK(at >= 1_MiB);
            if (servers == 1)
                CHECK(at == 1_MiB); // nothing is sharded
            else
                CHECK(at / all >= 64_KiB);
            CHECK((at == 1_MiB || at == all * 64_KiB));
            CHECK_FALSE(buffer::closes({.bucket_bytes = at - 1, .servers = servers, .local_ranks = local}));
            CHECK(buffer::closes({.bucket_bytes = at, .servers = servers, .local_ranks = local}));
        }
    // The over-sharding law: 25 MiB hold until 200 slices of 128 KiB.
    static_assert(balanced_buffer<>::threshold(200, 1) == 25_MiB);
    static_assert(balanced_buffer<>::threshold(201, 1) == 201 * 128_KiB);
    static_assert(balanced_buffer<>::threshold(26, 8) == 26 * 8 * 128_KiB);
}

TEST_CASE("balanced_buffer: a size that is named is kept, however many share a bucket") {
    CHECK(balanced_buffer<512_KiB>::threshold(4, 8) == 512_KiB);
    CHECK(balanced_buffer<25_MiB>::threshold(64, 8) == 25_MiB);
    CHECK(balanced_buffer<512_KiB>::closes({.bucket_bytes = 512_KiB, .servers = 200, .local_ranks = 8}));
    CHECK(balanced_buffer<512_KiB, 128_KiB>::threshold(4, 8) == 4_MiB); // unless it is asked to grow
}

TEST_CASE("per_tensor: every tensor closes its bucket") {
    using herring::fusion::per_tensor;
    static_assert(per_tensor::closes({}));
    static_assert(per_tensor::closes({.bucket_bytes = 1 << 30, .bucket_tensors = 1, .next_bytes = 5}));
    CHECK(per_tensor::name == std::string_view("per_tensor"));
    CHECK(std::is_empty_v<per_tensor>);
}

TEST_CASE("whole_model: nothing closes the one bucket") {
    using herring::fusion::whole_model;
    static_assert(!whole_model::closes({}));
    static_assert(!whole_model::closes({.bucket_bytes = std::size_t{1} << 40, .bucket_tensors = 1'000'000}));
    CHECK(whole_model::name == std::string_view("whole_model"));
    CHECK(std::is_empty_v<whole_model>);
}
