// herring: tests of fusion/fusion.hpp: balanced_buffer.
// SPDX-License-Identifier: Apache-2.0
#include "herring/fusion/fusion.hpp"

#include "doctest/doctest.h"

#include <string_view>
#include <type_traits>

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
