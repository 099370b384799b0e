// herring: the plan over a grid of worlds and sizes: covers every byte once, balanced, with the costs that are documented.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/plan.hpp"

#include "herring/fusion/balanced_buffer.hpp"
#include "herring/fusion/per_tensor.hpp"
#include "herring/fusion/whole_model.hpp"
#include "herring/sharding/balanced.hpp"
#include "herring/sharding/whole_tensor.hpp"
#include "herring/units.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <vector>

using namespace herring;

namespace {

constexpr exchange_tuning small{.chunk_bytes = 4096,
                                .window_bytes = 16384,
                                .one_hop_bytes = 1024,
                                .pair_bytes = 2048,
                                .local_chunk_bytes = 4096,
                                .mailbox_bytes = 512};

using counts = std::vector<std::size_t>;

template <class Fusion, class Sharding> plan make(counts const& elements, topology const& map) {
    return make_plan<Fusion, Sharding>(elements, map, sizeof(float), sizeof(float), small);
}

// Everything that must hold for any plan.
void verify(plan const& p, counts const& elements, topology const& map) {
    REQUIRE(p.tensors.size() == elements.size());
    std::size_t end = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        REQUIRE(p.tensors[i].elements == elements[i]);
        REQUIRE(p.tensors[i].offset == end);
        REQUIRE(p.tensors[i].offset % p.grain == 0);
        end += (elements[i] + p.grain - 1) / p.grain * p.grain;
        bucket const& b = p.buckets.at(p.tensors[i].bucket);
        REQUIRE(i >= b.first_tensor);
        REQUIRE(i < b.first_tensor + b.tensors);
    }
    REQUIRE(p.elements == end);
    std::size_t covered = 0;
    for (bucket const& b : p.buckets) {
        REQUIRE(b.offset == covered);
        covered += b.elements;
        std::size_t at = 0;
        std::uint32_t chunks = 0;
        for (std::uint32_t i = 0; i < b.shards; ++i) {
            shard const& s = p.shards.at(b.first_shard + i);
            REQUIRE(s.offset == at);
            REQUIRE(s.elements > 0);
            REQUIRE(s.first_chunk == chunks);
            if (b.path == route::two_hop) {
                REQUIRE(s.server >= 0);
                REQUIRE(s.server < map.nodes());
            }
            // The chunks cover the shard: all full but the last, which is not empty.
            REQUIRE(s.chunks >= 1);
            REQUIRE(s.chunk_elements * (s.chunks - 1) < s.elements);
            REQUIRE(s.chunk_elements * s.chunks >= s.elements);
            REQUIRE(s.chunk_elements * p.element_bytes <= 4096);
            if (b.path == route::one_hop) REQUIRE(s.chunk_elements <= p.hop_slot_elements());
            at += s.elements;
            chunks += s.chunks;
        }
        REQUIRE(at == b.elements);
        REQUIRE(chunks == b.chunks);
        std::size_t const bytes = b.elements * p.element_bytes;
        if (map.nodes() == 1)
            REQUIRE((b.path == route::local || b.path == route::mailbox));
        else
            REQUIRE(b.path == (bytes <= p.one_hop_limit() ? route::one_hop : route::two_hop));
    }
    REQUIRE(covered == p.elements);
}

std::vector<topology> worlds() {
    std::vector<topology> all;
    for (int const nodes : {1, 2, 3, 4, 7, 8, 16, 63, 64})
        for (int const local : {1, 2, 3, 4, 8, 64})
            if (nodes * local <= 512) all.push_back(topology::uniform(nodes, local));
    all.push_back(topology({0, 1, 1}));
    all.push_back(topology({0, 0, 1, 1, 1, 2}));
    all.push_back(topology({0, 1, 0, 1, 1, 2, 2, 2, 2, 3, 3}));
    return all;
}

std::vector<counts> models() {
    return {
        {}, {0}, {1}, {0, 0, 5}, {3, 1, 4, 1, 5, 9, 2, 6}, {1023, 1, 4097, 65537, 0, 17}, {262144, 99991}};
}

} // namespace

TEST_CASE("any world, any layout: every element is in one bucket, one shard, one chunk") {
    for (topology const& map : worlds())
        for (counts const& elements : models()) {
            CAPTURE(map.nodes());
            CAPTURE(map.largest_node());
            verify(make<fusion::balanced_buffer<64_KiB, 4_KiB>, sharding::balanced>(elements, map), elements,
                   map);
            verify(make<fusion::per_tensor, sharding::balanced>(elements, map), elements, map);
            verify(make<fusion::whole_model, sharding::whole_tensor>(elements, map), elements, map);
        }
}

TEST_CASE("a pair shares just the chunks that both handle") {
    for (int a = 1; a <= 8; ++a)
        for (int b = 1; b <= 8; ++b)
            for (int l = 0; l < a; ++l)
                for (int m = 0; m < b; ++m) {
                    chunk_stream const shared = chunk_stream::between(l, a, m, b);
                    std::uint32_t next = shared.first;
                    for (std::uint32_t k = 0; k < 200; ++k) {
                        bool const both = static_cast<int>(k) % a == l && static_cast<int>(k) % b == m;
                        bool const said = shared.any() && k == next;
                        REQUIRE(said == both);
                        if (said) next += shared.stride;
                    }
                }
}

TEST_CASE("every chunk has one handler on every node, and local ranks share the work where there is enough") {
    topology const map({0, 0, 0, 1, 1, 2});
    plan const p = make<fusion::whole_model, sharding::balanced>({1 << 20}, map);
    for (shard const& s : p.shards)
        for (int node = 0; node < map.nodes(); ++node) {
            std::vector<std::uint32_t> work(static_cast<std::size_t>(map.local_size(node)));
            for (std::uint32_t k = 0; k < s.chunks; ++k) ++work[k % work.size()];
            auto const [least, most] = std::minmax_element(work.begin(), work.end());
            CHECK(*most - *least <= 1);
        }
}

TEST_CASE("balanced: no server has more than one grain above another; whole_tensor: as the tensors fall") {
    for (int const nodes : {2, 3, 5, 8}) {
        topology const map = topology::uniform(nodes, 1);
        plan const p = make<fusion::whole_model, sharding::balanced>({99991, 3, 1000000}, map);
        std::vector<std::size_t> load(static_cast<std::size_t>(nodes));
        for (shard const& s : p.shards) load[static_cast<std::size_t>(s.server)] += s.elements;
        auto const [least, most] = std::minmax_element(load.begin(), load.end());
        CHECK(*most - *least <= p.grain);
        plan const naive = make<fusion::whole_model, sharding::whole_tensor>({99991, 3, 1000000}, map);
        CHECK(naive.shards.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) CHECK(naive.shards[i].server == static_cast<int>(i) % nodes);
    }
}

TEST_CASE("over-sharding: the bucket grows with servers and local ranks, so that a shard keeps its size") {
    using fusion = fusion::balanced_buffer<25_MiB, 128_KiB>;
    CHECK(fusion::threshold(1, 8) == 25_MiB);
    CHECK(fusion::threshold(8, 8) == 25_MiB);
    CHECK(fusion::threshold(64, 8) == 64_MiB);
    counts const layers(4000, 65536); // 256 KiB each
    topology const map = topology::uniform(64, 8);
    plan const p = make_plan<fusion, sharding::balanced>(layers, map, 4, 4, small);
    for (std::size_t b = 0; b + 1 < p.buckets.size(); ++b)
        CHECK(p.buckets[b].elements * 4 / (64 * 8) >= 128_KiB);
}

TEST_CASE("memory: the bound is its formula, and nothing on one node") {
    plan const one = make<fusion::whole_model, sharding::balanced>({100000}, topology::uniform(1, 4));
    CHECK(one.staging_bytes(3) == 0);
    plan const flat = make<fusion::whole_model, sharding::balanced>({100000}, topology::uniform(4, 1));
    CHECK(flat.window() == 4);
    CHECK(flat.staging_bytes(3) == 3 * (4 * 4096 + 8 * 1024));
    plan const both = make<fusion::whole_model, sharding::balanced>({100000}, topology::uniform(4, 2));
    CHECK(both.staging_bytes(3) == 3 * (2 * 4 * 4096 + 8 * 1024) + 4 * 1024);
    CHECK(to_string(flat).find("2 buckets") == std::string::npos);
    CHECK(to_string(flat).find("1 by two hops") != std::string::npos);
}

TEST_CASE("the digest tells plans apart, and nothing else") {
    topology const map = topology::uniform(2, 2);
    auto const digest = [&](counts const& c) {
        return make<fusion::whole_model, sharding::balanced>(c, map).digest;
    };
    CHECK(digest({10, 20}) == digest({10, 20}));
    CHECK(digest({10, 20}) != digest({20, 10}));
    CHECK(digest({10, 20}) != digest({10, 21}));
    plan const other =
        make_plan<fusion::whole_model, sharding::whole_tensor>(counts{100000, 20}, map, 4, 4, small);
    CHECK(other.digest != digest({100000, 20}));
}

TEST_CASE("a plan is a value that a constant expression can make") {
    constexpr std::size_t chunks = [] {
        std::size_t const sizes[] = {5000, 0, 70};
        plan const p =
            make_plan<fusion::whole_model, sharding::balanced>(sizes, topology::uniform(2, 1), 4, 4, small);
        return static_cast<std::size_t>(p.buckets[0].chunks) + p.shards.size();
    }();
    static_assert(chunks == 6 + 2);
    CHECK(chunks == 8);
}
