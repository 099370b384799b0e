// herring: the division of collectives' buckets: among owners of ranges, or with two results an element.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_COLLECTIVE_DIVISION_HPP
#define HERRING_PLAN_COLLECTIVE_DIVISION_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/range.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// True if a bucket of these ranges may be one chunk by one hop: each node has one rank, whose range fits a
/// slot.
constexpr bool is_one_chunk(std::span<range const> owned, route_limits const& of) noexcept {
    for (range const& one : owned)
        if (one.elements > of.hop_slot_elements()) return false;
    return of.largest_node == 1;
}

/// Upper bound on the elements of a node's part of a bucket of `elements`. A part is the least range that
/// contains all ranges of the node's ranks.
constexpr std::size_t largest_part(std::size_t elements, std::span<range const> owned,
                                   route_limits const& of) noexcept {
    if (of.largest_node > 1) return elements;
    std::size_t largest = 0;
    for (range const& one : owned) largest = std::max(largest, one.elements);
    return largest;
}

/// The route of a bucket of `elements` elements of which each rank owns a range. `slotted`: parts go to the
/// owners, as in a reduce-scatter; else each rank's part goes to all ranks.
///
/// Shape: by one hop a node gets, or sends, the ranges of its ranks in a chunk: as many bytes as by two hops,
///        in half the messages, where the bucket is one chunk. Where ranks share a node, the node's sums of
///        the chunk have to fit a slot. Dissemination forwards parts, and is chosen by the size of the parts.
constexpr route route_of(std::size_t elements, std::span<range const> owned, bool slotted,
                         route_limits const& of) noexcept {
    route const path = route_of(elements * of.element_bytes, of);
    if (of.nodes == 1 || !of.all_have_both_roles()) return path;
    if (!slotted && elements > 0 &&
        largest_part(elements, owned, of) * of.element_bytes <= of.dissemination_limit())
        return route::dissemination;
    return path == route::two_hop && is_one_chunk(owned, of) ? route::one_hop : path;
}

/// Upper bound on the shards of `divide_owned`.
constexpr std::size_t most_owned_shards(route_limits const& of, topology const& map) noexcept {
    auto const ranks = static_cast<std::size_t>(map.size());
    return of.contributors_serve() ? ranks : ranks * static_cast<std::size_t>(of.roles.server_count());
}

/// True if each rank's range is handled by its owner alone. By the other routes ranges are handled in chunks,
/// whatever the owners, or copied as a whole.
constexpr bool has_shards_of_owners(route path) noexcept {
    return path == route::local || path == route::two_hop;
}

/// Places ranges of `owned[rank].elements` elements in rank order, and returns the elements of the bucket.
/// Where owners write their ranges at the same time, each range begins `stride` elements after the one
/// before, so that no two ranges share a cache line. Elsewhere there is no padding: it would travel, and
/// might change the route.
///
/// Shape: `stride` is at least the elements of each range; at least one range.
/// Cost:  O(ranks).
constexpr std::size_t place_owned(std::span<range> owned, std::size_t stride, bool slotted,
                                  route_limits const& of) noexcept {
    std::size_t given = 0, next = 0;
    for (std::size_t r = 0; r < owned.size(); ++r) given += owned[r].elements;
    bool const padded = has_shards_of_owners(route_of(given, owned, slotted, of));
    for (std::size_t r = 0; r < owned.size(); ++r) {
        owned[r].offset = next;
        next += padded && owned[r].elements > 0 ? stride : owned[r].elements;
    }
    return next;
}

/// Fills in route, shards and chunks of a bucket of which each rank owns a range; replaces the contents of
/// `shards`.
///
/// Shape: `owned[rank]` in the bucket, ascending and without overlap. One shard an owner, which handles all
///        its chunks; by one hop one shard, of one chunk, or of several where a range may not fit a slot; by
///        dissemination one chunk. Where owners do not serve, each range is cut for the servers, in rotation.
///        `slotted`: parts of chunks are sent, and lie in slots; else results alone are sent.
/// Cost:  O(ranks), or O(ranks · servers); no allocation if `shards` has the capacity (`most_owned_shards`).
constexpr void divide_owned(bucket& result, std::size_t elements, std::span<range const> owned, bool slotted,
                            route_limits const& of, topology const& map, std::vector<shard>& shards) {
    result = {.elements = elements, .path = route_of(elements, owned, slotted, of)};
    shards.clear();
    bool const one_node = of.nodes == 1;
    std::size_t const chunk = std::max(
        (one_node ? of.tuning.local_chunk_bytes : of.chunk_bytes()) / of.element_bytes, std::size_t{1});
    std::size_t const of_owner = one_node || slotted ? chunk : of.unslotted_elements();
    bool const owners_serve = of.contributors_serve();
    auto const servers = static_cast<std::size_t>(of.roles.server_count());
    std::size_t next = 0; // server, in rotation
    auto const add = [&](range const& what, server_id server, int owner, int dealt_to, std::size_t most) {
        if (what.elements == 0) return;
        shard part = cut(what.offset, what.elements, server, most, of.line_elements, dealt_to);
        part.owner = owner;
        part.first_chunk = result.chunks;
        result.chunks += part.chunks;
        shards.push_back(part);
    };
    bool const forwarded = result.path == route::dissemination;
    if (forwarded || result.path == route::one_hop) {
        bool const whole = forwarded || is_one_chunk(owned, of);
        add({0, elements}, server_id{}, -1, of.largest_node,
            whole ? round_up(elements, of.line_elements) : chunk);
    } else if (!owners_serve) {
        for (int r = 0; r < map.size(); ++r) {
            range const& all = owned[static_cast<std::size_t>(r)];
            std::size_t const parts = std::min(divide_up(all.elements, chunk), servers);
            for (std::size_t at = 0; at < all.elements; ++next) {
                std::size_t const most = round_up(divide_up(all.elements, parts), of.line_elements),
                                  size = std::min(most, all.elements - at);
                add({all.offset + at, size}, server_id::at(next % servers), map.local_rank(r), 1, chunk);
                at += size;
            }
        }
    } else {
        for (int r = 0; r < map.size(); ++r)
            add(owned[static_cast<std::size_t>(r)], one_node ? server_id{0} : of.roles.server(map.node(r)),
                map.local_rank(r), 1, of_owner);
    }
    result.shards = static_cast<std::uint32_t>(shards.size());
}

/// Numbers that a node sends for each element of a bucket with two results (`update::moments`). Two where
/// ranks share a node: the sum, and the squares of distances, which do not follow from the sum.
constexpr std::size_t twofold_part_width(route_limits const& of) noexcept {
    return of.nodes > 1 && of.largest_node > 1 ? 2 : 1;
}

/// The place in a bucket's memory where the second results of its `elements` elements begin.
constexpr std::size_t twofold_begin(std::size_t elements, route_limits const& of) noexcept {
    return round_up(elements, of.line_elements);
}

/// Elements of the largest bucket that fits a bounce slot of `slot_elements` together with its second
/// results.
constexpr std::size_t twofold_piece(std::size_t slot_elements, route_limits const& of) noexcept {
    return slot_elements / 2 / of.line_elements * of.line_elements;
}

/// Fills in route, shards and chunks as `divide` does, for a bucket with two results for each element. Where
/// servers return results, each shard has a second shard, `twofold_begin` behind it, with the same server and
/// the same chunks: its pushes are empty, its results are the second results. Every rank handles the same
/// chunks of both, the second after the first.
///
/// Shape: the first results are a bucket; chunks are so small that parts of `twofold_part_width` fit slots.
/// Cost:  O(shards); no allocation if `shards` has the capacity.
template <class Sharding>
constexpr void divide_twofold(bucket& result, bucket_view const& view, route_limits const& facts,
                              std::vector<shard>& shards, division of) {
    of.part_width = twofold_part_width(facts);
    of.twofold = true;
    divide<Sharding>(result, view, facts, shards, of);
    if (result.path != route::two_hop) return;
    for (std::uint32_t s = 0; s < result.shards; ++s) {
        shard second = shards[result.first_shard + s];
        second.offset += twofold_begin(view.elements, facts);
        second.first_chunk += result.chunks;
        shards.push_back(second);
    }
    result.shards *= 2;
    result.chunks *= 2;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_PLAN_COLLECTIVE_DIVISION_HPP
