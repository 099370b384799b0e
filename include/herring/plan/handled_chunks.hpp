// herring: the places of an optimizer's numbers on the rank that combines their chunks: dense, in plan order.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_HANDLED_CHUNKS_HPP
#define HERRING_PLAN_HANDLED_CHUNKS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The chunks of a plan's buckets that one rank combines. By local and two hops: the chunks that the rank
/// handles of its node's shards; by two levels: its rack's shares of these; by one hop and dissemination: the
/// chunks that it handles of all shards; by mailbox: the whole bucket.
///
/// Shape:  a chunk takes as many places as the largest chunk of its shard, so that a place is computed in
///         O(log shards).
/// Memory: 8 bytes a shard of the plan.
class handled_chunks {
  public:
    handled_chunks() = default;
    /// `own`: the chunks of a shard that the rank handles; `server`: the server of the rank's node.
    handled_chunks(plan const& of, chunk_stream own, server_id server)
        : own_(own), server_(server), first_(of.shards.size()) {
        for (bucket const& b : of.buckets)
            for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s) {
                first_[s] = elements_;
                shard const& one = of.shards[s];
                if (is_handled(of, b.path, one)) elements_ += places(of, b.path, one, own);
            }
    }

    /// Places of the chunks `own` of a shard, whose bucket takes the route `by`.
    static std::size_t places(plan const& of, route by, shard const& one, chunk_stream own) noexcept {
        return by == route::mailbox ? round_up(one.elements, of.line_elements)
                                    : own.count(one) * places_of_chunk(of, by, one);
    }

    /// Calls `with(bucket number, offset in the bucket, elements, place)` for each chunk, in the order of the
    /// plan.
    template <class With> void for_each(plan const& of, With const& with) const {
        for (std::size_t b = 0; b < of.buckets.size(); ++b) {
            bucket const& in = of.buckets[b];
            if (in.path == route::mailbox) {
                if (in.shards > 0) with(b, std::size_t{0}, in.elements, first_[in.first_shard]);
                continue;
            }
            for (std::uint32_t s = in.first_shard; s < in.first_shard + in.shards; ++s) {
                shard const& one = of.shards[s];
                if (!is_handled(of, in.path, one)) continue;
                std::size_t at = first_[s];
                for (std::size_t k = own_.first; k < one.chunks;
                     k += own_.stride, at += places_of_chunk(of, in.path, one)) {
                    std::size_t const from = k * one.chunk_elements;
                    range what{one.offset + from, std::min(one.chunk_elements, one.elements - from)};
                    if (in.path == route::two_levels)
                        what = rack_share(what, of.racks[server_.place()], of.racks.back() + 1,
                                          of.line_elements);
                    if (what.elements > 0) with(b, what.offset, what.elements, at);
                }
            }
        }
    }

    /// All places.
    std::size_t elements() const noexcept { return elements_; }

    /// True if this rank is the lowest, node by node, of the ranks that combine its chunks of a bucket with
    /// this route.
    bool is_lowest(route by) const noexcept {
        if (has_servers(by) || by == route::local) return true; // no other rank combines them
        return server_.value == 0 && (by != route::mailbox || own_.first == 0);
    }

    /// The place of element `offset` of a bucket, which begins a chunk of this rank, or by mailbox the
    /// bucket.
    std::size_t place(plan const& of, std::size_t bucket_number, std::size_t offset) const noexcept {
        bucket const& b = of.buckets[bucket_number];
        std::size_t low = b.first_shard, high = low + b.shards;
        while (high - low > 1) { // shards are sorted by offset
            std::size_t const middle = low + (high - low) / 2;
            (of.shards[middle].offset <= offset ? low : high) = middle;
        }
        shard const& s = of.shards[low];
        std::size_t const chunk = (offset - s.offset) / s.chunk_elements;
        return first_[low] + (chunk - (b.path == route::mailbox ? 0 : own_.first)) / own_.stride *
                                 places_of_chunk(of, b.path, s);
    }

  private:
    static std::size_t places_of_chunk(plan const& of, route by, shard const& one) noexcept {
        return by == route::two_levels ? of.rack_share_elements(one.chunk_elements) : one.chunk_elements;
    }
    // By two levels servers are nodes too.
    bool is_handled(plan const& of, route by, shard const& one) const noexcept {
        if (by == route::two_levels) return server_.place() % of.columns.servers.size() == one.server.place();
        return by != route::two_hop || one.server == server_;
    }

    chunk_stream own_;
    server_id server_{0};
    std::vector<std::size_t> first_; // shard → place of the rank's first chunk of it
    std::size_t elements_ = 0;
};

/// Sets the least and the greatest memory of an optimizer on the ranks that combine, with `bytes` for each
/// place.
///
/// Cost: O(shards · ranks of a server); O(shards · ranks) for buckets that every node combines.
HERRING_SETUP inline void set_optimizer_bytes(plan& of, topology const& map, std::size_t bytes) {
    std::vector<std::size_t> places(static_cast<std::size_t>(map.size()));
    auto const add = [&](int node, bucket const& b, shard const& s) {
        auto const size = static_cast<std::uint32_t>(map.local_size(node));
        for (std::uint32_t l = 0; l < size; ++l)
            places[static_cast<std::size_t>(map.rank_of(node, static_cast<int>(l)))] +=
                handled_chunks::places(of, b.path, s, {l, size});
    };
    for (bucket const& b : of.buckets)
        for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s)
            if (b.path == route::two_hop)
                add(of.roles.node_of(of.shards[s].server), b, of.shards[s]);
            else if (b.path == route::two_levels)
                for (int n = of.shards[s].server.value; n < map.nodes(); n += of.columns.server_count())
                    add(n, b, of.shards[s]);
            else
                for (int const node : of.roles.servers) add(node, b, of.shards[s]);
    of.least_optimizer_bytes = ~std::size_t{0};
    of.most_optimizer_bytes = 0;
    for (int const node : of.roles.servers)
        for (int const rank : map.members(node)) {
            std::size_t const kept = places[static_cast<std::size_t>(rank)] * bytes;
            of.least_optimizer_bytes = std::min(of.least_optimizer_bytes, kept);
            of.most_optimizer_bytes = std::max(of.most_optimizer_bytes, kept);
        }
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_PLAN_HANDLED_CHUNKS_HPP
