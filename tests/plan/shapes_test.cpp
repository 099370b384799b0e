// herring: plans of all shapes up to 64 by 64: each byte once, one handler a node, balanced, with the costs as written down.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/plan.hpp"

#include "doctest/doctest.h"

#include "herring/element.hpp"
#include "herring/fusion/balanced_buffer.hpp"
#include "herring/fusion/per_tensor.hpp"
#include "herring/fusion/whole_model.hpp"
#include "herring/sharding/balanced.hpp"
#include "herring/sharding/whole_tensor.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using herring::bucket;
using herring::chunk_stream;
using herring::exchange_tuning;
using herring::make_plan;
using herring::plan;
using herring::route;
using herring::shard;
using herring::topology;
namespace fusion = herring::fusion;
namespace sharding = herring::sharding;
using namespace herring::literals;

namespace {

using sizes = std::vector<std::size_t>;

exchange_tuning small_tuning() {
    return {.chunk_bytes = 4096,
            .window_bytes = 16384,
            .one_hop_bytes = 1024,
            .pair_bytes = 8192,
            .local_chunk_bytes = 2048,
            .mailbox_bytes = 512};
}
/// What tcp and shared_memory ask for, about.
exchange_tuning usual_tuning() {
    return {.chunk_bytes = 128_KiB,
            .window_bytes = 256_KiB,
            .one_hop_bytes = 16_KiB,
            .pair_bytes = 1_MiB,
            .local_chunk_bytes = 64_KiB,
            .mailbox_bytes = 4_KiB};
}

/// Empty tensors, smaller than the number of servers, odd ones, large ones.
std::vector<sizes> layouts() {
    std::vector<sizes> made{{},
                            {0},
                            {0, 0, 0},
                            {1},
                            {1, 1, 1, 1, 1},
                            {63},
                            {0, 5, 0, 7, 0},
                            {1009, 2003, 4001, 1},
                            {65'537},
                            {31, 1'000'003, 0, 17, 300'007}};
    std::mt19937 random(3);
    sizes many;
    for (int i = 0; i < 200; ++i) many.push_back(random() % 5 == 0 ? random() % 20 : random() % 9973);
    made.push_back(many);
    return made;
}

/// What is wrong with a plan; empty: nothing. Not by assertions, for there are hundreds of thousands of facts.
class inspection {
  public:
    inspection(plan const& p, sizes const& tensors, topology const& map)
        : p_(p), tensors_(tensors), map_(map) {
        placement();
        for (std::size_t b = 0; b < p.buckets.size(); ++b) cover(p.buckets[b]);
        if (p.nodes != map.nodes() || p.largest_node != map.largest_node()) say("another topology");
    }
    std::string const& what() const { return what_; }

  private:
    void say(std::string const& text) {
        if (what_.size() < 1000) what_ += text + "\n";
    }

    // Tensors lie one behind the other, each on a cache line, each in one bucket, in order.
    void placement() {
        if (p_.tensors.size() != tensors_.size()) return say("a tensor is missing");
        std::size_t end = 0;
        std::size_t next = 0;
        for (std::size_t b = 0; b < p_.buckets.size(); ++b) {
            bucket const& it = p_.buckets[b];
            if (it.offset != end) say("a gap between buckets");
            if (it.first_tensor != next || it.tensors == 0) say("tensors out of order");
            for (std::size_t k = 0; k < it.tensors; ++k, ++next) {
                herring::placed_tensor const& t = p_.tensors[next];
                if (t.offset != end) say("a gap between tensors");
                if (t.offset * p_.element_bytes % 64 != 0) say("a tensor that is not on a cache line");
                if (t.elements != tensors_[next] || t.bucket != b) say("a tensor of another size or bucket");
                end += (t.elements + p_.grain - 1) / p_.grain * p_.grain;
            }
            if (it.offset + it.elements != end) say("a bucket of another size");
        }
        if (next != tensors_.size() || p_.elements != end) say("tensors in no bucket");
    }

    // Shards and chunks cover a bucket once; no chunk is larger than what a slot holds; the route is by size.
    void cover(bucket const& b) {
        std::size_t const bytes = b.elements * p_.element_bytes;
        bool const one_node = map_.nodes() == 1;
        route const expected =
            one_node ? (bytes <= p_.tuning.mailbox_bytes && map_.largest_node() > 2 ? route::mailbox
                                                                                    : route::local)
                     : (bytes <= p_.one_hop_limit() ? route::one_hop : route::two_hop);
        if (b.path != expected) say("a route that its size does not say");
        std::size_t const limit = one_node                   ? p_.tuning.local_chunk_bytes / p_.element_bytes
                                  : b.path == route::one_hop ? p_.hop_slot_elements()
                                                             : p_.slot_elements();
        std::size_t at = 0;
        std::uint32_t chunks = 0;
        for (std::uint32_t i = 0; i < b.shards; ++i) {
            shard const& s = p_.shards[b.first_shard + i];
            if (s.offset != at) say("a gap or an overlap between shards");
            if (s.elements == 0 || s.chunks == 0) say("an empty shard");
            if (s.offset % p_.grain != 0 || s.chunk_elements % p_.grain != 0)
                say("a cut within a cache line");
            if (s.first_chunk != chunks) say("chunk ids with a gap");
            if (b.path == route::two_hop ? s.server < 0 || s.server >= map_.nodes()
                                         : s.server != (one_node ? 0 : -1))
                say("a wrong server");
            std::size_t covered = 0;
            for (std::uint32_t k = 0; k < s.chunks; ++k) {
                std::size_t const from = k * s.chunk_elements;
                if (from >= s.elements) return say("a chunk behind the end of its shard");
                std::size_t const size = std::min(s.chunk_elements, s.elements - from);
                if (size > limit)
                    say("a chunk of " + std::to_string(size) + " elements where a slot holds " +
                        std::to_string(limit));
                covered += size;
            }
            if (covered != s.elements) say("chunks that do not cover their shard");
            at += s.elements;
            chunks += s.chunks;
        }
        if (at != b.elements || chunks != b.chunks) say("shards that do not cover their bucket");
    }

    plan const& p_;
    sizes const& tensors_;
    topology const& map_;
    std::string what_;
};

template <class Fusion, class Sharding>
std::string inspect(sizes const& tensors, topology const& map, std::size_t element, std::size_t accumulator,
                    exchange_tuning const& tuning) {
    plan const p = make_plan<Fusion, Sharding>(tensors, map, element, accumulator, tuning);
    return inspection(p, tensors, map).what();
}

template <class Fusion, class Sharding> void sweep() {
    std::vector<int> const counts{1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 63, 64};
    std::string wrong;
    for (int const nodes : counts)
        for (int const local : counts) {
            topology const map = topology::uniform(nodes, local);
            for (sizes const& tensors : layouts())
                for (auto const& [element, accumulator] :
                     {std::pair<std::size_t, std::size_t>{4, 4}, {8, 8}, {2, 4}}) {
                    if (tensors.size() > 50 && element != 4) continue;
                    std::string const found = inspect<Fusion, Sharding>(
                        tensors, map, element, accumulator, nodes % 2 == 0 ? small_tuning() : usual_tuning());
                    if (!found.empty() && wrong.size() < 2000)
                        wrong += std::to_string(nodes) + " nodes of " + std::to_string(local) + ", " +
                                 std::to_string(tensors.size()) + " tensors, " + std::to_string(element) +
                                 " bytes: " + found;
                }
        }
    CHECK(wrong == "");
}

/// Ranks of nodes of these sizes, dealt out in turn.
topology uneven(std::vector<int> left) {
    std::vector<int> ids;
    for (bool any = true; any;) {
        any = false;
        for (std::size_t n = 0; n < left.size(); ++n)
            if (left[n]-- > 0) {
                ids.push_back(static_cast<int>(n));
                any = true;
            }
    }
    return topology(ids);
}

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
                    std::size_t const others = static_cast<std::size_t>(map.nodes()) - 1;
                    if (b.path == route::one_hop)
                        sent[handler] += others * size * p.partial_bytes;
                    else if (n == s.server)
                        sent[handler] += others * size * p.element_bytes; // results
                    else
                        sent[handler] += size * p.partial_bytes; // a push
                }
            }
        }
    }
    return sent;
}

} // namespace

TEST_CASE("plan: every byte of every bucket once, all shapes up to 64 by 64: balanced_buffer, balanced") {
    sweep<fusion::balanced_buffer<>, sharding::balanced>();
}
TEST_CASE("plan: the same: per_tensor, balanced") { sweep<fusion::per_tensor, sharding::balanced>(); }
TEST_CASE("plan: the same: whole_model, whole_tensor") {
    sweep<fusion::whole_model, sharding::whole_tensor>();
}
TEST_CASE("plan: the same: small buffers, whole_tensor") {
    sweep<fusion::balanced_buffer<10'000, 64>, sharding::whole_tensor>();
}

TEST_CASE("plan: uneven nodes") {
    std::string wrong;
    for (std::vector<int> const& nodes :
         {std::vector<int>{1, 2}, {2, 3, 1}, {7, 1}, {1, 1, 1, 8}, {3, 4}, {5, 4, 3, 2, 1}, {64, 1, 33}})
        for (sizes const& tensors : layouts()) {
            wrong += inspect<fusion::balanced_buffer<>, sharding::balanced>(tensors, uneven(nodes), 4, 4,
                                                                            small_tuning());
            wrong += inspect<fusion::per_tensor, sharding::whole_tensor>(tensors, uneven(nodes), 2, 4,
                                                                         small_tuning());
            wrong += inspect<fusion::whole_model, sharding::balanced>(tensors, uneven(nodes), 8, 8,
                                                                      usual_tuning());
            // Sizes that nothing divides.
            exchange_tuning const odd{.chunk_bytes = 1001,
                                      .window_bytes = 3000,
                                      .one_hop_bytes = 333,
                                      .pair_bytes = 0,
                                      .local_chunk_bytes = 130,
                                      .mailbox_bytes = 77};
            wrong += inspect<fusion::per_tensor, sharding::balanced>(tensors, uneven(nodes), 4, 4, odd);
        }
    CHECK(wrong == "");
}

TEST_CASE("plan: a chunk stream holds exactly the chunks that two ranks both handle, against brute force") {
    std::size_t wrong = 0;
    for (int size_l = 1; size_l <= 24; ++size_l)
        for (int size_m = 1; size_m <= 24; ++size_m) {
            // Every chunk of a pair of nodes has one handler on each: the streams of all pairs partition the chunks.
            std::vector<int> owners(static_cast<std::size_t>(2 * std::lcm(size_l, size_m)), 0);
            for (int l = 0; l < size_l; ++l)
                for (int m = 0; m < size_m; ++m) {
                    chunk_stream const both = chunk_stream::between(l, size_l, m, size_m);
                    for (std::size_t k = 0; k < owners.size(); ++k) {
                        bool const brute =
                            static_cast<int>(k) % size_l == l && static_cast<int>(k) % size_m == m;
                        bool const stream =
                            both.any() && k >= both.first && (k - both.first) % both.stride == 0;
                        wrong += brute != stream;
                        owners[k] += brute;
                    }
                    wrong += both.any() && both.first >= both.stride;
                }
            wrong += static_cast<std::size_t>(
                std::count_if(owners.begin(), owners.end(), [](int n) { return n != 1; }));
        }
    CHECK(wrong == 0);
    CHECK_FALSE(chunk_stream{}.any());
    static_assert(chunk_stream::between(1, 2, 3, 4).first == 3 &&
                  chunk_stream::between(1, 2, 3, 4).stride == 4);
    static_assert(!chunk_stream::between(0, 2, 3, 4).any());
    // Large and without common divisors.
    static_assert(chunk_stream::between(63, 64, 62, 63).first == 4031 &&
                  chunk_stream::between(63, 64, 62, 63).stride == 4032);
}

TEST_CASE("plan: servers are balanced: max/mean < 1 + S/B, whatever the tensors") {
    for (int const nodes : {2, 3, 4, 7, 16, 64})
        for (sizes const& tensors : layouts()) {
            plan const p = make_plan<fusion::whole_model, sharding::balanced>(
                tensors, topology::uniform(nodes, 2), 4, 4, small_tuning());
            for (bucket const& b : p.buckets) {
                if (b.path != route::two_hop) continue;
                std::vector<std::size_t> load(static_cast<std::size_t>(nodes), 0);
                for (std::uint32_t i = 0; i < b.shards; ++i)
                    load[static_cast<std::size_t>(p.shards[b.first_shard + i].server)] +=
                        p.shards[b.first_shard + i].elements;
                std::size_t const most = *std::max_element(load.begin(), load.end()) / p.grain;
                std::size_t const grains = b.elements / p.grain;
                CHECK(most * static_cast<std::size_t>(nodes) < grains + static_cast<std::size_t>(nodes));
            }
        }
    // The baseline is not: the largest tensor's server carries all of it.
    plan const naive = make_plan<fusion::whole_model, sharding::whole_tensor>(
        sizes{1'000'000, 16, 16, 16}, topology::uniform(4, 1), 4, 4, usual_tuning());
    CHECK(naive.shards[0].elements == 1'000'000);
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
                    if (s.elements >=
                        2 * p.grain * static_cast<std::size_t>(local) * static_cast<std::size_t>(local)) {
                        CHECK(*least > 0);
                        CHECK(*most - *least <= s.chunk_elements);
                    }
                }
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

TEST_CASE("plan: 16-bit elements of several ranks of a node travel wide, so that they are rounded once") {
    plan const one_each = make_plan<fusion::whole_model, sharding::balanced>(
        sizes{100'000}, topology::uniform(2, 1), 2, 4, small_tuning());
    CHECK(one_each.partial_bytes == 2);
    plan const several = make_plan<fusion::whole_model, sharding::balanced>(
        sizes{100'000}, topology::uniform(2, 2), 2, 4, small_tuning());
    CHECK(several.partial_bytes == 4);
    plan const mixed = make_plan<fusion::whole_model, sharding::balanced>(sizes{100'000}, uneven({1, 2}), 2,
                                                                          4, small_tuning());
    CHECK(mixed.partial_bytes == 4); // the same on both sides of a wire
}

TEST_CASE("plan: the over-sharding law: a bucket grows with the servers, so that no slice falls below the "
          "minimum") {
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

TEST_CASE("plan: thresholds are inclusive") {
    auto const path = [](std::size_t elements, int nodes, int local) {
        return make_plan<fusion::whole_model, sharding::balanced>(
                   sizes{elements}, topology::uniform(nodes, local), 4, 4, small_tuning())
            .buckets[0]
            .path;
    };
    CHECK(path(128, 1, 3) == route::mailbox);
    CHECK(path(129, 1, 3) == route::local);
    CHECK(path(1, 1, 2) == route::local); // two ranks have nothing to gain by mailboxes
    CHECK(path(1, 1, 1) == route::local);
    CHECK(path(256, 3, 1) == route::one_hop);
    CHECK(path(257, 3, 1) == route::two_hop);
    CHECK(path(2048, 2, 1) == route::one_hop); // pair_bytes
    CHECK(path(2049, 2, 1) == route::two_hop);
    CHECK(path(0, 2, 2) == route::one_hop);
}

TEST_CASE("plan: memory is as the formula says") {
    for (int const nodes : {1, 2, 3, 8})
        for (int const local : {1, 2}) {
            plan const p = make_plan<fusion::whole_model, sharding::balanced>(
                sizes{1000}, topology::uniform(nodes, local), 4, 4, small_tuning());
            std::size_t const hop = std::min<std::size_t>(nodes == 2 ? 8192 : 1024, 4096);
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

TEST_CASE("plan: in a constant expression") {
    constexpr bool fine = [] {
        std::size_t const tensors[] = {1000, 0, 24};
        plan const p = make_plan<fusion::per_tensor, sharding::balanced>(
            tensors, topology::uniform(3, 2), 4, 4,
            {.chunk_bytes = 1024, .window_bytes = 4096, .one_hop_bytes = 128, .local_chunk_bytes = 1024});
        return p.buckets.size() == 3 && p.buckets[0].path == route::two_hop && p.buckets[1].elements == 0 &&
               p.buckets[2].path == route::one_hop && p.elements == 1008 + 32 && p.buckets[0].shards == 3 &&
               p.shards[0].elements == 336 && p.shards[2].server == 2 && p.tensors[2].offset == 1008;
    }();
    static_assert(fine);
    static_assert(to_string(route::two_hop)[0] == 't');
}

TEST_CASE("plan: every rank makes the same one") {
    sizes const tensors = layouts().back();
    plan const one = make_plan<fusion::balanced_buffer<100'000>, sharding::balanced>(tensors, uneven({3, 2}),
                                                                                     4, 4, usual_tuning());
    plan const two = make_plan<fusion::balanced_buffer<100'000>, sharding::balanced>(tensors, uneven({3, 2}),
                                                                                     4, 4, usual_tuning());
    REQUIRE(one.shards.size() == two.shards.size());
    for (std::size_t i = 0; i < one.shards.size(); ++i) {
        CHECK(one.shards[i].offset == two.shards[i].offset);
        CHECK(one.shards[i].server == two.shards[i].server);
        CHECK(one.shards[i].chunk_elements == two.shards[i].chunk_elements);
    }
}
