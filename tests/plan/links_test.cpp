// herring: what declared links choose: routes, servers, sizes of buckets, and the time of a step at 256 nodes of 8.
// SPDX-License-Identifier: Apache-2.0
#include "plan/inputs.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/plan/choose.hpp"
#include "herring/plan/plan.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using herring::bucket;
using herring::choice;
using herring::choose;
using herring::links;
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

/// 100 Gbit/s, 10 µs, 0.5 µs a message and end.
constexpr links fast{.latency_ns = 10'000, .send_ns = 500, .receive_ns = 500, .rate_mbit = 100'000};

herring::exchange_tuning tuning_with(links const& by) {
    auto tuning = usual_tuning();
    tuning.links = by;
    return tuning;
}

/// BERT-large's tensors in the order in which backward completes them.
sizes bert_large() {
    std::string const here = __FILE__;
    std::ifstream file(here.substr(0, here.rfind("tests/")) + "bench/data/bert_large.csv");
    REQUIRE(file.good());
    sizes found;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) found.push_back(std::stoull(line.substr(line.rfind(',') + 1)));
    REQUIRE(found.size() == 398);
    return found;
}

/// A step of 392 ms, of which backward takes 62 %, each tensor in proportion to its elements and the tied
/// embedding at the end. One network of 12 GB/s carries one bucket after the other; a rank counts its messages.
/// Returns the efficiency in hundredths of a percent.
int efficiency(plan const& p) {
    double const step = 392e6, rate = 12.0, latency = 10e3, message = 1e3; // ns, bytes/ns
    double const share = double(p.nodes - 1) / p.nodes;
    double elements = 0;
    for (auto const& t : p.tensors) elements += double(t.elements);
    double done = 0, free = 0;
    double const last = double(p.tensors.back().elements);
    for (bucket const& b : p.buckets) {
        REQUIRE(b.path == route::two_hop);
        double messages = 0; // of rank 0, which sends a push a chunk to others, and its own chunks' results
        for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s) {
            herring::chunk_stream const own{0, static_cast<std::uint32_t>(p.largest_node)};
            messages += double(own.count(p.shards[s])) * (p.shards[s].server.value == 0 ? p.nodes - 1 : 1);
        }
        for (auto const& t : p.tensors)
            if (t.bucket == std::uint32_t(&b - p.buckets.data())) done += double(t.elements);
        // The layers take all of backward; the embedding's gradient is complete with the last of them.
        double const ready = step * 0.38 + step * 0.62 * std::min(done / (elements - last), 1.0);
        double const bytes = double(b.elements) * share;
        double const wire = (double(p.parts.bytes(1)) + double(p.element_bytes)) * bytes / rate;
        free = std::max(ready, free) + std::max(messages * message, wire);
    }
    return int(step / std::max(step, free + 2 * latency) * 10'000);
}

} // namespace

TEST_CASE("links: no links, and links without a rate, leave the plan as it is") {
    for (sizes const& tensors : layouts())
        for (auto const& [nodes, local] :
             {std::pair{1, 4}, std::pair{2, 1}, std::pair{5, 2}, std::pair{64, 8}}) {
            topology const map = topology::uniform(nodes, local);
            auto const with = [&](links const& by) {
                return make_plan<fusion::balanced_buffer<>, sharding::balanced>(tensors, map, 4, 4,
                                                                                tuning_with(by));
            };
            plan const plain =
                make_plan<fusion::balanced_buffer<>, sharding::balanced>(tensors, map, 4, 4, usual_tuning());
            CHECK(with({}).digest == plain.digest);
            links none = fast;
            none.rate_mbit = 0;
            plan const same = with(none);
            CHECK(same.digest == plain.digest);
            CHECK(same.tuning.chunk_bytes == usual_tuning().chunk_bytes);
            CHECK(same.one_hop_limit() == plain.one_hop_limit());
            CHECK(same.staging_bytes(7) == plain.staging_bytes(7));
            if (nodes == 1) CHECK(with(fast).digest == plain.digest);
        }
}

TEST_CASE("links: the plan takes the route and the servers that choose names, within the limits of memory") {
    sizes tensors;
    for (std::size_t bytes = 64; bytes <= 16_MiB; bytes += bytes / 4) tensors.push_back(bytes / 4);
    links const slower{.latency_ns = 1'000, .send_ns = 2'500, .receive_ns = 2'500, .rate_mbit = 10'000};
    for (int const nodes : {3, 8, 64, 256})
        for (int const local : {1, 8})
            for (auto const& by : {fast, slower}) {
                plan const p = make_plan<fusion::per_tensor, sharding::balanced>(
                    tensors, topology::uniform(nodes, local), 4, 4, tuning_with(by));
                std::size_t taken = 0;
                for (bucket const& b : p.buckets) {
                    std::size_t const bytes = b.elements * 4;
                    choice const best = choose(p.shape(), bytes, by);
                    bool const fits =
                        best.path == route::two_hop ||
                        bytes <= (best.path == route::one_hop ? p.one_hop_limit() : p.dissemination_limit());
                    taken += fits;
                    CAPTURE(nodes);
                    CAPTURE(local);
                    CAPTURE(bytes);
                    if (fits) CHECK(b.path == best.path);
                    if (!fits || b.path != route::two_hop) continue;
                    CHECK(int(b.shards) <= best.servers); // shards are whole lines
                    CHECK(int(b.shards) >= best.servers * 7 / 8);
                }
                CHECK(taken >= p.buckets.size() * 3 / 4);
            }
}

TEST_CASE(
    "links: where ranks share cores each bucket takes the way that choose names, and parts have limits too") {
    sizes tensors;
    for (std::size_t bytes = 64; bytes <= 1_MiB; bytes += bytes / 4) tensors.push_back(bytes / 4);
    auto tuning =
        tuning_with({.latency_ns = 30'000, .send_ns = 5'000, .receive_ns = 5'000, .rate_mbit = 500});
    for (std::uint32_t const cores : {1u, 2u, 16u}) {
        tuning.shared_cores = cores;
        plan const p =
            make_plan<fusion::per_tensor, sharding::balanced>(tensors, topology::uniform(6, 1), 4, 4, tuning);
        for (bucket const& b : p.buckets) {
            choice const best = choose(p.shape(), b.elements * 4, p.tuning.links);
            CAPTURE(b.elements);
            CAPTURE(cores);
            CHECK(b.path == best.path);
            if (b.path == route::two_hop) CHECK(b.shards == std::uint32_t(best.servers));
        }
        CHECK(p.buckets[0].path == (cores == 16 ? route::dissemination : route::two_hop));
        // Calls in which ranks give parts know neither few servers nor, but for all-gathers, dissemination.
        CHECK(p.one_hop_limit() > 0);
    }
}

TEST_CASE("links: a bucket with few servers has every element once, in even shards, and servers take turns") {
    sizes const tensors(64, 16'384); // 64 KiB each
    plan const p = make_plan<fusion::per_tensor, sharding::balanced>(tensors, topology::uniform(64, 1), 4, 4,
                                                                     tuning_with(fast));
    std::vector<std::size_t> load(64);
    for (bucket const& b : p.buckets) {
        REQUIRE(b.path == route::two_hop);
        REQUIRE(b.shards == 16);
        std::size_t next = 0;
        for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s) {
            CHECK(p.shards[s].offset == next);
            CHECK(p.shards[s].elements == 1024);
            next += p.shards[s].elements;
            load[p.shards[s].server.place()] += p.shards[s].elements;
        }
        CHECK(next == b.elements);
    }
    CHECK(*std::min_element(load.begin(), load.end()) == *std::max_element(load.begin(), load.end()));
}

TEST_CASE("links: a bucket is full where its messages cost a quarter of the wire, unless its size is named") {
    auto const full = [](auto policy, int nodes, links const& by) {
        return make_plan<decltype(policy), sharding::balanced>(sizes(1, 1), topology::uniform(nodes, 8), 4, 4,
                                                               tuning_with(by))
            .grown_fusion_bytes;
    };
    CHECK(full(fusion::balanced_buffer<>{}, 256, fast) == 12'800'000);
    CHECK(full(fusion::balanced_buffer<>{}, 256, {}) == 256_MiB);
    CHECK(full(fusion::balanced_buffer<>{}, 8, fast) == 4_MiB);
    CHECK(full(fusion::balanced_buffer<1_MiB>{}, 256, fast) == 1_MiB);
    // Execution numbers have 12 bits.
    CHECK(make_plan<fusion::balanced_buffer<>, sharding::balanced>(
              sizes(20'000, 1'000'000), topology::uniform(8, 1), 4, 4, tuning_with(fast))
              .buckets.size() <= 1024);
}

TEST_CASE("links: BERT-large on 256 nodes of 8 is within 1.5 points of what its last tensor allows") {
    sizes const tensors = bert_large();
    topology const map = topology::uniform(256, 8);
    links by = fast;
    by.rate_mbit = 96'000; // 12 GB/s
    auto const of = [&](std::size_t element, herring::exchange_tuning const& tuning) {
        return efficiency(
            make_plan<fusion::balanced_buffer<>, sharding::balanced>(tensors, map, element, 4, tuning));
    };
    // The bounds: the embedding's transfer behind backward, 95.0 and 96.2 %.
    int const plain = of(4, usual_tuning()), floats = of(4, tuning_with(by)), halves = of(2, tuning_with(by));
    MESSAGE("efficiency in hundredths of a percent: " << plain << " without links, " << floats << " with, "
                                                      << halves << " in 16 bits");
    CHECK(plain < 8'800);
    CHECK(floats >= 9'350);
    CHECK(halves >= 9'470);
}

TEST_CASE("links: memory stays bounded: one hop and dissemination stage at most 32 MiB a rank each") {
    links const by{.latency_ns = 100, .send_ns = 5'000, .receive_ns = 5'000, .rate_mbit = 400'000};
    for (int const nodes : {3, 8, 64, 256, 2048})
        for (int const local : {1, 8}) {
            plan const p = make_plan<fusion::balanced_buffer<>, sharding::balanced>(
                sizes(16, 262'144), topology::uniform(nodes, local), 4, 4, tuning_with(by));
            auto const peers = static_cast<std::size_t>(nodes - 1);
            CAPTURE(nodes);
            CHECK(peers * plan::one_hop_window() * p.hop_slot_elements() * 4 <= 32_MiB + peers * 8 * 512);
            CHECK(plan::dissemination_window() * p.dissemination_buffer_bytes() <= 33_MiB);
        }
}

TEST_CASE("links: the plan's text has the links, what was chosen, its time and the next best") {
    plan const p = make_plan<fusion::balanced_buffer<>, sharding::balanced>(
        sizes(16, 1'000'000), topology::uniform(8, 1), 4, 4, tuning_with(fast));
    std::string const text = to_string(p);
    CAPTURE(text);
    CHECK(text.find("links latency=10000,send=500,receive=500,rate=100000") != std::string::npos);
    CHECK(text.find("in place of 26214400, by the links") != std::string::npos);
    CHECK(text.find("two hops and 8 servers at 1 levels in ") != std::string::npos);
    CHECK(text.find("next best two hops and 4 servers") != std::string::npos);
}

TEST_CASE("links: in racks with a slow uplink large buckets take two levels, from the size that is chosen") {
    topology const two_racks({0, 1, 2, 3, 4, 5}, {}, {}, {0, 0, 0, 1, 1, 1});
    links by{.latency_ns = 50'000, .send_ns = 5'000, .receive_ns = 5'000, .rate_mbit = 500};
    auto const plan_with = [&](std::uint32_t uplink, std::size_t elements) {
        by.uplink_rate_mbit = uplink;
        auto const p = make_plan<fusion::whole_model, sharding::balanced>(sizes(1, elements), two_racks, 4, 4,
                                                                          tuning_with(by));
        INFO(to_string(p));
        bool const large = p.has_two_levels() && elements * 4 >= p.tuning.two_level_bytes;
        CHECK((p.buckets.at(0).path == route::two_levels) == large);
        return p;
    };
    CHECK(plan_with(375, 4 << 20).buckets[0].path == route::two_levels); // 4 : 1
    CHECK(plan_with(375, 64).buckets[0].path != route::two_levels);
    plan const flat = plan_with(100'000, 4 << 20); // no size is faster by two levels: they have no memory
    CHECK(flat.buckets[0].path == route::two_hop);
    CHECK(flat.two_level_staging() == 0);
    CHECK(to_string(flat).find("for two levels") == std::string::npos);
}

TEST_CASE("links: an uplink without racks is refused, and on one node is not used") {
    links uplink = fast;
    uplink.uplink_rate_mbit = 100'000;
    auto const with = [&](int nodes) {
        return make_plan<fusion::balanced_buffer<>, sharding::balanced>(
            sizes(1, 64), topology::uniform(nodes, 2), 4, 4, tuning_with(uplink));
    };
    CHECK(with(1).nodes == 1);
    CHECK_THROWS_WITH_AS(with(2), doctest::Contains("no racks are declared"), herring::error);
}
