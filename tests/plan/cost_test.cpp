// herring: what plans cost: load of servers and of local ranks, bytes sent, memory, the sizes of buckets.
// SPDX-License-Identifier: Apache-2.0
#include "plan/inputs.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

using herring::bucket;
using herring::make_plan;
using herring::plan;
using herring::route;
using herring::shard;
using herring::topology;
namespace fusion = herring::fusion;
namespace sharding = herring::sharding;
using namespace herring::literals;
using namespace herring::plan_inputs;

namespace {

/// Bytes that each rank sends in one step: pushes, results, and what goes in one hop.
std::vector<std::size_t> bytes_sent(plan const& p, topology const& map) {
    std::vector<std::size_t> sent(static_cast<std::size_t>(map.size()), 0);
    for (bucket const& b : p.buckets) {
        if (map.nodes() == 1) continue;
        for (std::uint32_t i = 0; i < b.shards; ++i) {
            shard const& s = p.shards[b.first_shard + i];
            for (std::uint32_t k = 0; k < s.chunks; ++k) {
                std::size_t const size = std::min(s.chunk_elements, s.elements - k * s.chunk_elements);
                for (int n = 0; n < map.nodes(); ++n) {
                    std::size_t const handler =
                        static_cast<std::size_t>(map.rank_of(n, static_cast<int>(k) % map.local_size(n)));
                    bool const contributes = p.roles.contributor(n).value >= 0;
                    if (!contributes && n != p.roles.node_of(s.server)) continue; // another server
                    std::size_t const others = p.roles.contributors.size() - (contributes ? 1 : 0);
                    if (b.path == route::one_hop)
                        sent[handler] += p.parts.bytes(others * size);
                    else if (n == p.roles.node_of(s.server))
                        sent[handler] += others * size * p.element_bytes; // results
                    else
                        sent[handler] += p.parts.bytes(size); // a push
                }
            }
        }
    }
    return sent;
}

} // namespace

TEST_CASE(
    "plan: servers are balanced, whatever the tensors: within a cache line, so that max/mean < 1 + S/B") {
    for (int const nodes : {2, 3, 4, 7, 16, 64})
        for (sizes const& tensors : layouts()) {
            plan const p = make_plan<fusion::whole_model, sharding::balanced>(
                tensors, topology::uniform(nodes, 2), 4, 4, small_tuning());
            for (bucket const& b : p.buckets) {
                if (b.path != route::two_hop) continue;
                std::vector<std::size_t> load(static_cast<std::size_t>(nodes), 0);
                for (std::uint32_t i = 0; i < b.shards; ++i)
                    load[p.shards[b.first_shard + i].server.place()] += p.shards[b.first_shard + i].elements;
                auto const [least, most] = std::minmax_element(load.begin(), load.end());
                CHECK(*most - *least < 2 * p.line_elements); // the last line need not be full
                std::size_t const lines = (b.elements + p.line_elements - 1) / p.line_elements;
                CHECK(*most / p.line_elements * static_cast<std::size_t>(nodes) <
                      lines + static_cast<std::size_t>(nodes));
            }
        }
    // The baseline is not: a tensor's server carries all of it, and they take turns.
    plan const naive = make_plan<fusion::whole_model, sharding::whole_tensor>(
        sizes{1'000'000, 16, 16, 16}, topology::uniform(4, 1), 4, 4, usual_tuning());
    CHECK(naive.shards[0].elements == 1'000'000);
    REQUIRE(naive.shards.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(naive.shards[i].server == herring::server_id::at(i));
}

TEST_CASE("plan: every local rank has work where the size allows it, none more than a chunk above another") {
    for (int const nodes : {1, 2, 4})
        for (int const local : {2, 3, 4, 7, 8, 16})
            for (std::size_t const elements : {1'000u, 10'000u, 100'003u, 1'000'000u}) {
                plan const p = make_plan<fusion::whole_model, sharding::balanced>(
                    sizes{elements}, topology::uniform(nodes, local), 4, 4, small_tuning());
                for (shard const& s : p.shards) {
                    std::vector<std::size_t> work(static_cast<std::size_t>(local), 0);
                    for (std::uint32_t k = 0; k < s.chunks; ++k)
                        work[k % static_cast<std::uint32_t>(local)] +=
                            std::min(s.chunk_elements, s.elements - k * s.chunk_elements);
                    auto const [least, most] = std::minmax_element(work.begin(), work.end());
                    // Chunks are whole cache lines: below a line or two for each rank, some have none.
                    if (s.elements >= 2 * p.line_elements * static_cast<std::size_t>(local) *
                                          static_cast<std::size_t>(local)) {
                        CHECK(*least > 0);
                        CHECK(*most - *least <= s.chunk_elements);
                    }
                }
            }
}

TEST_CASE("plan: on uneven nodes as well, no local rank handles more than one chunk above another") {
    topology const map = uneven({3, 2, 1});
    plan const p =
        make_plan<fusion::whole_model, sharding::balanced>(sizes{1 << 20}, map, 4, 4, small_tuning());
    for (shard const& s : p.shards)
        for (int node = 0; node < map.nodes(); ++node) {
            std::vector<std::uint32_t> handled(static_cast<std::size_t>(map.local_size(node)));
            for (std::uint32_t k = 0; k < s.chunks; ++k) ++handled[k % handled.size()];
            auto const [least, most] = std::minmax_element(handled.begin(), handled.end());
            CHECK(*most - *least <= 1);
        }
}

TEST_CASE("plan: costs: two hops send 2(n-1)/n of the bytes a node, shared by its ranks; one hop n-1 times") {
    for (int const nodes : {2, 3, 4, 8, 16})
        for (int const local : {1, 2, 4}) {
            topology const map = topology::uniform(nodes, local);
            std::size_t const elements = 4'000'000;
            plan const p = make_plan<fusion::balanced_buffer<>, sharding::balanced>(sizes{elements}, map, 4,
                                                                                    4, usual_tuning());
            std::vector<std::size_t> const sent = bytes_sent(p, map);
            double const node_bytes = 2.0 * (nodes - 1) / nodes * static_cast<double>(elements) * 4;
            for (int n = 0; n < nodes; ++n) {
                std::size_t total = 0;
                for (int const r : map.members(n)) total += sent[static_cast<std::size_t>(r)];
                CHECK(static_cast<double>(total) == doctest::Approx(node_bytes).epsilon(1e-4));
            }
            for (std::size_t const s : sent)
                CHECK(static_cast<double>(s) == doctest::Approx(node_bytes / local).epsilon(0.15));
        }
    topology const map = topology::uniform(5, 1);
    plan const small =
        make_plan<fusion::whole_model, sharding::balanced>(sizes{256}, map, 4, 4, small_tuning());
    for (std::size_t const s : bytes_sent(small, map)) CHECK(s == 4 * 1024);
    // Between two nodes one hop sends no more than two would.
    plan const pair = make_plan<fusion::whole_model, sharding::balanced>(sizes{2048}, topology::uniform(2, 1),
                                                                         4, 4, small_tuning());
    CHECK(pair.buckets[0].path == route::one_hop);
    for (std::size_t const s : bytes_sent(pair, topology::uniform(2, 1))) CHECK(s == 8192);
}

TEST_CASE("plan: the over-sharding law: a bucket grows with the servers, so that no slice falls below the "
          "minimum") {
    using usual = fusion::balanced_buffer<25_MiB, 128_KiB>;
    CHECK(usual::threshold(1, 8) == 25_MiB);
    CHECK(usual::threshold(8, 8) == 25_MiB);
    CHECK(usual::threshold(64, 8) == 64_MiB);
    // A model of 2000 tensors of 1 MiB.
    sizes const tensors(2000, 262'144);
    for (int const nodes : {1, 2, 8, 25, 64})
        for (int const local : {1, 8, 16}) {
            plan const p = make_plan<fusion::balanced_buffer<>, sharding::balanced>(
                tensors, topology::uniform(nodes, local), 4, 4, usual_tuning());
            std::size_t const wanted = fusion::balanced_buffer<>::threshold(nodes, local);
            for (std::size_t b = 0; b + 1 < p.buckets.size(); ++b) { // the last one holds what is left
                std::size_t const bytes = p.buckets[b].elements * 4;
                CHECK(bytes >= wanted);
                CHECK(bytes < wanted + 1_MiB); // closed by the tensor that reached it
                if (nodes > 1)
                    for (std::uint32_t i = 0; i < p.buckets[b].shards; ++i)
                        CHECK(p.shards[p.buckets[b].first_shard + i].elements * 4 /
                                  static_cast<std::size_t>(local) >=
                              128_KiB - 64);
            }
        }
}

TEST_CASE("plan: its text says when a bucket is full, and why that is not what the policy has") {
    sizes const tensors(64, 16'384); // of 64 KiB
    topology const map = topology::uniform(4, 8);
    plan const named =
        make_plan<fusion::balanced_buffer<512_KiB>, sharding::balanced>(tensors, map, 4, 4, usual_tuning());
    CHECK(named.buckets.size() == 8);
    CHECK(to_string(named).find("; a bucket is full with 524288 bytes; ") != std::string::npos);
    plan const grown = make_plan<fusion::balanced_buffer<512_KiB, 128_KiB>, sharding::balanced>(
        tensors, map, 4, 4, usual_tuning());
    CHECK(grown.buckets.size() == 1);
    CHECK(to_string(grown).find("; a bucket is full with 4194304 bytes in place of 524288, for 4 servers x 8 "
                                "ranks get at least 131072 of it each") != std::string::npos);
    plan const each = make_plan<fusion::per_tensor, sharding::balanced>(tensors, map, 4, 4, usual_tuning());
    CHECK(to_string(each).find("full") == std::string::npos);
}

TEST_CASE("plan: by dissemination no message has more parts than announced, and one has as many") {
    for (int nodes = 3; nodes < 200; ++nodes) {
        plan p;
        p.nodes = nodes;
        std::size_t most = 0, all = 1;
        for (std::size_t have = 1; have < static_cast<std::size_t>(nodes); have *= 2) {
            std::size_t const sent = std::min(have, static_cast<std::size_t>(nodes) - have);
            most = std::max(most, sent);
            all += sent;
        }
        CHECK(all == static_cast<std::size_t>(nodes));
        CHECK(p.dissemination_message_parts() == most);
    }
}

TEST_CASE("plan: dissemination takes buckets that a rank gives as a whole or not at all, and none that "
          "owners divide") {
    plan p;
    p.nodes = 4;
    p.element_bytes = p.parts.element_bytes = 4;
    p.tuning = {.chunk_bytes = 4096, .message_ns = 1000, .latency_ns = 1, .dissemination_bytes = 4096};
    for (std::size_t const hop : {0u, 512u, 8192u}) {
        p.tuning.one_hop_bytes = hop;
        CHECK(herring::detail::route_of(1024, p, true) == route::dissemination);
        CHECK(herring::detail::route_of(1024, p) == (hop < 1024 ? route::two_hop : route::one_hop));
        CHECK(herring::detail::route_of(0, p, true) == route::one_hop);
    }
}

TEST_CASE("plan: where ranks share few cores small buckets go to one server, by the number of messages") {
    auto const path = [](int nodes, std::uint32_t cores, std::size_t elements = 256) {
        return make_plan<fusion::per_tensor, sharding::balanced>(sizes{elements}, topology::uniform(nodes, 1),
                                                                 4, 4,
                                                                 {.chunk_bytes = 4096,
                                                                  .one_hop_bytes = 2048,
                                                                  .message_ns = 1000,
                                                                  .dissemination_bytes = 1024,
                                                                  .whole_bytes = 2048,
                                                                  .shared_cores = cores})
            .buckets[0]
            .path;
    };
    CHECK(path(2, 1) == route::one_hop); // two messages either way
    CHECK(path(3, 0) == route::one_hop);
    CHECK(path(3, 2) == route::two_hop); // 4 messages in place of 6
    CHECK(path(4, 0) == route::dissemination);
    CHECK(path(4, 1) == route::two_hop); // 6 in place of 8
    CHECK(path(4, 2) == route::two_hop);
    CHECK(path(4, 3) == route::dissemination); // the server's 3 one after the other, 8 on three cores
    CHECK(path(8, 3) == route::two_hop);
    CHECK(path(8, 4) == route::dissemination);
    CHECK(path(4, 2, 512) == route::two_hop);
    CHECK(path(4, 2, 513) == route::two_hop); // above one hop
    CHECK(path(4, 0, 512) == route::one_hop);
    std::size_t const size[] = {256, 513};
    plan const p = make_plan<fusion::per_tensor, sharding::balanced>(
        size, topology::uniform(4, 1), 4, 4,
        {.chunk_bytes = 1024, .one_hop_bytes = 64, .whole_bytes = 2048, .shared_cores = 2});
    CHECK(p.whole_limit() == 1024); // a chunk
    CHECK(p.buckets[0].shards == 1);
    CHECK(p.buckets[1].shards == 4);
}

TEST_CASE("plan: a slot has room for the largest chunk, whatever the size of elements") {
    for (std::size_t const element : {1u, 3u, 24u, 65u, 99u, 200u, 255u, 256u})
        for (std::size_t const elements : {1u, 20u, 63u, 64u, 65u, 1000u})
            for (std::size_t const hop : {0u, 2048u, 16'384u}) {
                plan const p = make_plan<fusion::whole_model, sharding::balanced>(
                    sizes{elements}, topology::uniform(3, 2), element, element,
                    {.chunk_bytes = 4096, .window_bytes = 8192, .one_hop_bytes = hop});
                for (bucket const& b : p.buckets)
                    for (std::uint32_t i = 0; i < b.shards; ++i) {
                        shard const& s = p.shards[b.first_shard + i];
                        CHECK(std::min(s.chunk_elements, s.elements) <=
                              (b.path == route::one_hop ? p.hop_slot_elements() : p.slot_elements()));
                    }
            }
}

TEST_CASE("plan: memory is as the formula says") {
    for (int const nodes : {1, 2, 3, 8})
        for (int const local : {1, 2}) {
            plan const p = make_plan<fusion::whole_model, sharding::balanced>(
                sizes{1000}, topology::uniform(nodes, local), 4, 4, small_tuning());
            // Between two nodes 8 KiB take one hop, of which two local ranks have half each.
            std::size_t const hop = nodes == 2 ? 4096 : 1024 / static_cast<std::size_t>(local);
            for (std::size_t const peers : {0u, 1u, 7u})
                CHECK(p.staging_bytes(peers) == (nodes == 1 || peers == 0 ? 0
                                                 : local > 1 ? peers * (2 * 4 * 4096 + 8 * hop) + 4 * hop
                                                             : peers * (4 * 4096 + 8 * hop)));
            CHECK(p.window() == 4);
            CHECK(p.tensor_bytes() == 1008 * 4);
        }
    plan tight;
    tight.tuning = {.chunk_bytes = 4096, .window_bytes = 4096};
    CHECK(tight.window() == 2); // one on its way, one being summed
}

TEST_CASE("plan: memory and messages of a rank are as the formulas say, up to 2,048 nodes of 8") {
    sizes const tensors(100, 262'144); // 100 MiB
    auto const check = [&](std::size_t nodes, std::size_t local, std::size_t bucket_bytes, plan const& p) {
        CAPTURE(nodes);
        CAPTURE(local);
        CAPTURE(bucket_bytes);
        REQUIRE(p.buckets.size() == 100_MiB / bucket_bytes);
        // A server has an N-th of a bucket, in chunks of at most 128 KiB, as many for each local rank.
        std::size_t const share = bucket_bytes / nodes,
                          chunks = (share + 128_KiB * local - 1) / (128_KiB * local), // of a rank
            chunk = (share / (chunks * local) + 63) / 64 * 64;
        for (shard const& s : p.shards) {
            REQUIRE(s.chunks == chunks * local);
            REQUIRE(s.chunk_elements * 4 == chunk);
        }
        // Calls in place have chunks of the tuning; pieces have no larger chunks than these.
        std::size_t const piece = std::min(2 * local * nodes * 128_KiB, 16_MiB),
                          of_calls = std::max({4_KiB, piece / (2 * nodes), piece / (nodes * local) + 128}),
                          slot = local == 1 ? 128_KiB : std::min(128_KiB, std::max(of_calls, chunk)),
                          hop = 16_KiB / local, stages = local > 1 ? 2 * slot : 0;
        CHECK(p.slot_elements() * 4 == slot);
        CHECK(p.hop_slot_elements() * 4 == hop);
        CHECK(p.staging_bytes(nodes - 1) ==
              (nodes - 1) * (2 * slot + stages + 8 * hop) + (local > 1 ? 4 * hop : 0));
        herring::memory_map const memory = make_memory_map(
            p, {}, nodes - 1, [](std::size_t, std::size_t) noexcept { return std::size_t{0}; });
        CHECK(memory.local_offset - memory.bounce_offset == (local == 1 ? 0 : 4 * piece));
        // Pushes to the other servers, and results to their ranks.
        std::size_t sent = 0;
        for (shard const& s : p.shards) {
            herring::chunk_stream const own{0, static_cast<std::uint32_t>(local)}; // of rank 0
            sent += own.count(s) * (s.server.value == 0 ? nodes - 1 : 1);
        }
        CHECK(sent == p.buckets.size() * 2 * (nodes - 1) * chunks);
    };
    for (std::size_t const nodes : {8u, 64u, 256u, 2048u})
        for (std::size_t const local : {1u, 8u}) {
            topology const map = topology::uniform(static_cast<int>(nodes), static_cast<int>(local));
            check(nodes, local, 25_MiB,
                  make_plan<fusion::balanced_buffer<25_MiB>, sharding::balanced>(tensors, map, 4, 4,
                                                                                 usual_tuning()));
            check(nodes, local, 100_MiB,
                  make_plan<fusion::whole_model, sharding::balanced>(tensors, map, 4, 4, usual_tuning()));
        }
    // The paper's 256 nodes of 8, with buckets of 25 MiB: 35.9 MiB of staging and 64 MiB of slots.
    plan const p = make_plan<fusion::balanced_buffer<25_MiB>, sharding::balanced>(
        tensors, topology::uniform(256, 8), 4, 4, usual_tuning());
    CHECK(p.staging_bytes(255) == 255 * (4 * 32_KiB + 8 * 2_KiB) + 8_KiB);
}

TEST_CASE("plan: by two levels 2,048 nodes of 8 in racks of 32 take at most 256 MiB beside tensors") {
    auto const in_racks = [](int nodes, int local, int each) {
        std::vector<int> ids, racks;
        for (int r = 0; r < nodes * local; ++r) {
            ids.push_back(r / local);
            racks.push_back(r / local / each);
        }
        return topology(ids, {}, {}, racks);
    };
    sizes const tensors(100, 262'144); // 100 MiB, in buckets of 25 MiB
    for (auto const& shape : {std::array{2048, 8, 32}, std::array{256, 8, 16}, std::array{64, 1, 8}}) {
        int const nodes = shape[0], local = shape[1], each = shape[2];
        CAPTURE(nodes);
        plan const p = make_plan<fusion::balanced_buffer<25_MiB>, sharding::balanced>(
            tensors, in_racks(nodes, local, each), 4, 4, usual_tuning());
        auto const near = static_cast<std::size_t>(each - 1),
                   far = static_cast<std::size_t>(nodes / each - 1);
        CHECK(p.near_nodes() == near);
        CHECK(p.far_nodes() == far);
        // Four chunks at a time of each near node, twice where parts are staged, a rack's share of each far one, and a sum.
        std::size_t const share = (128_KiB / (far + 1) + 63) / 64 * 64;
        CHECK(p.two_level_staging() == 4 * ((local > 1 ? 2 : 1) * near * 128_KiB + far * share + 128_KiB));
        herring::memory_map const memory =
            make_memory_map(p, {}, static_cast<std::size_t>(nodes - 1),
                            [](std::size_t, std::size_t) noexcept { return std::size_t{0}; });
        CHECK(memory.staging_bytes + (memory.local_offset - memory.bounce_offset) <= 256_MiB);
        // Messages of a rank: its chunks' parts and results in the rack, and shares' sums and results; flat 2 (nodes − 1) a chunk.
        std::size_t sent = 0;
        for (bucket const& b : p.buckets) {
            REQUIRE(b.path == route::two_levels);
            for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s) {
                herring::chunk_stream const own{0, static_cast<std::uint32_t>(local)};
                std::size_t const chunks = own.count(p.shards[s]);
                sent += p.shards[s].server.value == 0 ? chunks * (near + 2 * far) : chunks;
            }
        }
        std::size_t const of_rank = (25_MiB / static_cast<std::size_t>(each * local) + 128_KiB - 1) / 128_KiB;
        CHECK(sent == 4 * of_rank * 2 * (near + far));
    }
}

TEST_CASE(
    "plan: among many ranks the chunks of calls fit the slots, and equal shares are cut no further for it") {
    namespace detail = herring::detail;
    struct shape {
        int nodes, local;
        std::size_t element, accumulator;
    };
    constexpr shape shapes[] = {
        {65, 2, 4, 4}, {256, 8, 4, 4}, {256, 8, 2, 4}, {300, 3, 24, 24}, {1024, 8, 4, 4}};
    for (shape const& of : shapes) {
        CAPTURE(of.nodes);
        CAPTURE(of.element);
        topology const map = topology::uniform(of.nodes, of.local);
        plan const p = make_plan<fusion::balanced_buffer<1_MiB>, sharding::balanced>(
            sizes(10, 40'000), map, of.element, of.accumulator, usual_tuning());
        std::size_t const piece = detail::piece_elements_of(p),
                          slot = p.parts.bytes(p.slot_elements()); // of a push
        std::vector<shard> shards;
        bucket piece_of_call;
        auto const check = [&](herring::route_limits const& facts, std::size_t width) {
            for (shard const& s : shards) {
                std::size_t const part = facts.parts.bytes(std::min(s.chunk_elements, s.elements) * width);
                REQUIRE(part <=
                        (piece_of_call.path == route::one_hop ? p.parts.bytes(p.hop_slot_elements()) : slot));
            }
        };
        for (bool const of_bytes : {false, true}) {
            herring::route_limits const facts = of_bytes ? detail::in_bytes(p) : herring::route_limits(p);
            herring::route_limits uncut = facts;
            uncut.call_chunk_bytes = 0;
            if (of_bytes) uncut.tuning.chunk_bytes = 128_KiB;
            std::size_t const all = of_bytes ? piece * of.element : piece;
            for (std::size_t const elements : {all, all - 1, all / 3, std::size_t{1000}, std::size_t{1}}) {
                herring::bucket_tensor const whole{0, 0, elements};
                herring::bucket_view const view{elements, facts.line_elements, std::span(&whole, 1)};
                auto const divide = [&]<class Sharding>(Sharding, herring::route_limits const& by) {
                    shards.clear();
                    piece_of_call = {};
                    detail::divide<Sharding>(piece_of_call, view, by, shards, {});
                };
                divide(sharding::balanced{}, uncut);
                std::uint32_t const chunks = piece_of_call.chunks;
                divide(sharding::balanced{}, facts);
                check(facts, 1);
                CHECK(piece_of_call.chunks == chunks);
                divide(sharding::whole_tensor{}, facts);
                check(facts, 1);
                if (of_bytes) continue;
                shards.clear();
                piece_of_call = {};
                herring::bucket_view const half{std::min(elements, detail::twofold_piece(piece, facts)),
                                                facts.line_elements, std::span(&whole, 1)};
                detail::divide_twofold<sharding::balanced>(piece_of_call, half, facts, shards, {});
                check(facts, 2);
            }
            // A range of each rank.
            std::vector<herring::range> owned(static_cast<std::size_t>(map.size()));
            std::size_t const each =
                std::max(all / owned.size() / facts.line_elements, std::size_t{1}) * facts.line_elements;
            for (herring::range& one : owned) one.elements = each;
            for (bool const slotted : {false, true}) {
                std::size_t const elements = detail::place_owned(owned, each, slotted, facts);
                detail::divide_owned(piece_of_call, elements, owned, slotted, facts, map, shards);
                if (slotted) check(facts, 1);
                for (shard const& s : shards) CHECK((s.chunks == 1 || piece_of_call.path != route::two_hop));
            }
        }
    }
}

TEST_CASE(
    "plan: costs: with servers of their own a node sends its gradients once, and a server n/k of them") {
    for (int const nodes : {1, 2, 4, 8})
        for (int const local : {1, 2, 4})
            for (int const servers : {1, 2, 3, 8}) {
                topology const map = with_servers(topology::uniform(nodes, local), servers, local == 2);
                std::size_t const elements = 4'000'000;
                plan const p =
                    make_plan<fusion::balanced_buffer<>, sharding::balanced, herring::placement::dedicated>(
                        sizes{elements}, map, 4, 4, usual_tuning());
                std::vector<std::size_t> const sent = bytes_sent(p, map);
                double const all = static_cast<double>(elements) * 4;
                for (int n = 0; n < map.nodes(); ++n) {
                    std::size_t total = 0;
                    for (int const r : map.members(n)) total += sent[static_cast<std::size_t>(r)];
                    double const due = map.is_server_node(n) ? all * nodes / servers : all;
                    CHECK(static_cast<double>(total) == doctest::Approx(due).epsilon(1e-4));
                }
            }
}

TEST_CASE("plan: costs: on nodes of workers and 4 + 2 machines no network sends more than BytePS's optimum, "
          "1.2 M") {
    for (int const nodes : {3, 4, 6, 8})
        for (int servers = 0; servers <= nodes; ++servers) {
            topology const map = with_servers(topology::uniform(nodes, 1), servers, false);
            plan const p =
                make_plan<fusion::balanced_buffer<>, sharding::balanced, herring::placement::optimal>(
                    sizes{8'000'000}, map, 4, 4, usual_tuning());
            std::vector<std::size_t> const sent = bytes_sent(p, map);
            double const n = nodes, k = servers, due = k >= n ? 1 : 2 * n * (n - 1) / (n * n + k * n - 2 * k);
            CHECK(static_cast<double>(*std::max_element(sent.begin(), sent.end())) ==
                  doctest::Approx(due * 8'000'000 * 4).epsilon(1e-3));
        }
}

TEST_CASE("plan: small buckets go to one server each, and servers have alike") {
    for (int const servers : {1, 2, 3, 5}) {
        topology const map = with_servers(topology::uniform(3, 1), servers, true);
        sizes tensors(97, 240);
        tensors[40] = 1'000'000;
        plan const p = make_plan<fusion::per_tensor, sharding::balanced, herring::placement::dedicated>(
            tensors, map, 4, 4, usual_tuning());
        std::vector<std::size_t> load(static_cast<std::size_t>(servers));
        for (bucket const& b : p.buckets) {
            if (b.elements < 1000) CHECK(b.shards == 1);
            for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s)
                load[p.shards[s].server.place()] += p.shards[s].elements;
        }
        auto const [least, most] = std::minmax_element(load.begin(), load.end());
        CHECK(*most - *least <= 240);
    }
}
