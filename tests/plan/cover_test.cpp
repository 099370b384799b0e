// herring: plans of all shapes up to 64 by 64 and of uneven nodes: each byte once, one handler a node, no chunk too large.
// SPDX-License-Identifier: Apache-2.0
#include "plan/inputs.hpp"

#include "doctest/doctest.h"

#include "herring/placement/dedicated.hpp"

#include "herring/fusion/fusion.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
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
namespace placement = herring::placement;
namespace sharding = herring::sharding;
using namespace herring::plan_inputs;

namespace {

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
        std::size_t covered = 0; // but for padding, with which no bucket ends
        std::size_t filled = 0;  // end of the last tensor
        std::size_t const most =
            p_.tuning.split_bytes == 0 ? p_.elements : p_.tuning.split_bytes / p_.element_bytes;
        for (std::size_t b = 0; b < p_.buckets.size(); ++b) {
            bucket const& it = p_.buckets[b];
            if (it.offset != up_to_a_line(covered)) say("a gap between buckets");
            if (it.elements > most && p_.buckets.size() < p_.max_splits()) say("a bucket that is not cut");
            covered = it.offset + it.elements;
            if (it.tensors > 0 && it.first_tensor != next) say("tensors out of order");
            if (it.tensors == 0 && (it.elements == 0 || covered > end)) say("a bucket of no tensor's");
            if (it.tensors == 0) {
                herring::placed_tensor const& t = p_.tensors[it.first_tensor];
                if (t.offset > it.offset || it.offset >= t.offset + t.elements) say("another first tensor");
            }
            if (it.tensors > 0 && it.offset != end) say("a bucket that begins within another's tensors");
            for (std::size_t k = 0; k < it.tensors; ++k, ++next) {
                herring::placed_tensor const& t = p_.tensors[next];
                if (t.offset != end) say("a gap between tensors");
                if (t.offset * p_.element_bytes % 64 != 0) say("a tensor that is not on a cache line");
                if (t.elements != tensors_[next] || t.bucket != b) say("a tensor of another size or bucket");
                if (t.elements > 0) filled = end + t.elements;
                end += up_to_a_line(t.elements);
            }
            if (p_.tuning.split_bytes == 0 && it.elements > 0 && covered != filled)
                say("a bucket of another size");
        }
        if (next != tensors_.size() || p_.elements != end || up_to_a_line(filled) != end)
            say("tensors in no bucket");
        if (covered != filled && up_to_a_line(covered) != end) say("elements in no bucket");
    }
    std::size_t up_to_a_line(std::size_t elements) const noexcept {
        return (elements + p_.line_elements - 1) / p_.line_elements * p_.line_elements;
    }

    // Shards and chunks cover a bucket once; no chunk is larger than what a slot holds; the route is by size.
    void cover(bucket const& b) {
        std::size_t const bytes = b.elements * p_.element_bytes;
        bool const one_node = map_.nodes() == 1;
        route const expected =
            one_node ? (bytes <= p_.tuning.mailbox_bytes && map_.largest_node() > 2 ? route::mailbox
                                                                                    : route::local)
            : !p_.all_have_both_roles()   ? route::two_hop
            : bytes <= p_.one_hop_limit() ? route::one_hop
                                          : route::two_hop;
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
            if (s.offset % p_.line_elements != 0 || s.chunk_elements % p_.line_elements != 0)
                say("a cut within a cache line");
            if (s.first_chunk != chunks) say("chunk ids with a gap");
            if (b.path == route::two_hop ? s.server.value < 0 || s.server.value >= p_.roles.server_count()
                                         : s.server.value != (one_node ? 0 : -1))
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

template <class Fusion, class Sharding, class Placement = herring::placement::colocated>
std::string inspect(sizes const& tensors, topology const& map, std::size_t element, std::size_t accumulator,
                    exchange_tuning const& tuning) {
    plan const p = make_plan<Fusion, Sharding, Placement>(tensors, map, element, accumulator, tuning);
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
                    exchange_tuning tuning = nodes % 2 == 0 ? small_tuning() : usual_tuning();
                    if (local % 3 == 0) tuning.split_bytes = nodes % 2 == 0 ? 10'000 : 262144;
                    std::string const found =
                        inspect<Fusion, Sharding>(tensors, map, element, accumulator, tuning);
                    if (!found.empty() && wrong.size() < 2000)
                        wrong += std::to_string(nodes) + " nodes of " + std::to_string(local) + ", " +
                                 std::to_string(tensors.size()) + " tensors, " + std::to_string(element) +
                                 " bytes: " + found;
                }
        }
    CHECK(wrong == "");
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
                                      .one_hop_bytes_two_nodes = 0,
                                      .local_chunk_bytes = 130,
                                      .mailbox_bytes = 77,
                                      .split_bytes = 7001};
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

TEST_CASE("plan: servers of their own, on workers' nodes of every size") {
    std::string wrong;
    for (std::vector<int> const& nodes : {std::vector<int>{1}, {1, 1, 1}, {2, 3, 1}, {4, 4}, {64, 1, 33}})
        for (int const servers : {1, 2, 3, 4, 7, 64})
            for (bool const first : {false, true}) {
                topology const map = with_servers(uneven(nodes), servers, first);
                for (sizes const& tensors : layouts()) {
                    wrong += inspect<fusion::balanced_buffer<>, sharding::balanced, placement::dedicated>(
                        tensors, map, 4, 4, small_tuning());
                    wrong += inspect<fusion::per_tensor, sharding::whole_tensor, placement::dedicated>(
                        tensors, map, 2, 4, usual_tuning());
                    wrong += inspect<fusion::whole_model, sharding::balanced, placement::optimal>(
                        tensors, map, 8, 8, usual_tuning());
                }
            }
    CHECK(wrong == "");
}
