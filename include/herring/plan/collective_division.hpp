// herring: divides a bucket among the ranks that own its ranges, for reduce-scatter and all-gather. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_COLLECTIVE_DIVISION_HPP
#define HERRING_PLAN_COLLECTIVE_DIVISION_HPP

#include "herring/base/config.hpp"
#include "herring/base/round_up.hpp"
#include "herring/model/range.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Whether a bucket of these ranges may be one chunk by one hop: each node has one rank, whose range fits a slot.
constexpr bool is_one_chunk(std::span<range const> owned, plan const& of) noexcept {
    for (range const& one : owned)
        if (one.elements > of.hop_slot_elements()) return false;
    return of.largest_node == 1;
}

/// Elements that a node's part of a bucket of `elements` has at most, where a part is the least range with all that the node's
/// ranks own.
constexpr std::size_t largest_part(std::size_t elements, std::span<range const> owned,
                                   plan const& of) noexcept {
    if (of.largest_node > 1) return elements;
    std::size_t largest = 0;
    for (range const& one : owned) largest = std::max(largest, one.elements);
    return largest;
}

/// The route of a bucket of `elements` elements of which each rank owns a range. `slotted`: parts go to the owners, as in a
/// reduce-scatter; else each rank's goes to all.
///
/// Shape: by one hop a node gets, or sends, what its ranks own of a chunk: as many bytes as by two hops, in half the
///        messages, where the bucket is one chunk. Where ranks share a node, its sums of the chunk have to fit a slot.
///        Dissemination forwards parts, and is chosen by their size.
constexpr route route_of(std::size_t elements, std::span<range const> owned, bool slotted,
                         plan const& of) noexcept {
    route const path = route_of(elements * of.element_bytes, of);
    if (of.nodes == 1 || !of.all_have_both_roles()) return path;
    if (!slotted && elements > 0 &&
        largest_part(elements, owned, of) * of.element_bytes <= of.dissemination_limit())
        return route::dissemination;
    return path == route::two_hop && is_one_chunk(owned, of) ? route::one_hop : path;
}

/// Upper bound on the shards of `divide_owned`.
constexpr std::size_t most_owned_shards(plan const& of, topology const& map) noexcept {
    auto const ranks = static_cast<std::size_t>(map.size());
    return of.contributors_serve() ? ranks : ranks * static_cast<std::size_t>(of.roles.server_count());
}

/// Whether each rank's range is handled by its owner alone. By the other routes ranges are handled in chunks, whatever
/// their owners are, or copied as a whole.
constexpr bool has_shards_of_owners(route path) noexcept {
    return path == route::local || path == route::two_hop;
}

/// Places ranges of `owned[rank].elements` elements one behind the other, and returns the elements of the bucket that
/// they fill. Where owners write their ranges at the same time, each begins `stride` elements after the one before, so
/// that no two share a cache line; elsewhere there is no padding, which would travel, and might take another route.
///
/// Shape: `stride` is at least the elements of each range; at least one range.
/// Cost:  O(ranks).
constexpr std::size_t place_owned(std::span<range> owned, std::size_t stride, bool slotted,
                                  plan const& of) noexcept {
    std::size_t given = 0, next = 0;
    for (std::size_t r = 0; r < owned.size(); ++r) given += owned[r].elements;
    bool const padded = has_shards_of_owners(route_of(given, owned, slotted, of));
    for (std::size_t r = 0; r < owned.size(); ++r) {
        owned[r].offset = next;
        next += padded && owned[r].elements > 0 ? stride : owned[r].elements;
    }
    return next;
}

/// Fills in route, shards and chunks of a bucket of which each rank owns a range; replaces the contents of `shards`.
///
/// Shape: `owned[rank]` in the bucket, ascending and without overlap. One shard per owner, which handles all its
///        chunks; by one hop a single shard: one chunk, or where a range may not fit a slot several; by dissemination one
///        chunk. Where owners do not serve, each range is cut for the servers, in rotation. `slotted`: parts of chunks are sent,
///        which lie in slots; else results alone.
/// Cost:  O(ranks), or O(ranks · servers); no allocation if `shards` has the capacity (`most_owned_shards`).
constexpr void divide_owned(bucket& result, std::size_t elements, std::span<range const> owned, bool slotted,
                            plan const& of, topology const& map, std::vector<shard>& shards) {
    result = {.elements = elements, .path = route_of(elements, owned, slotted, of)};
    shards.clear();
    bool const one_node = of.nodes == 1;
    std::size_t const chunk = std::max(
        (one_node ? of.tuning.local_chunk_bytes : of.tuning.chunk_bytes) / of.element_bytes, std::size_t{1});
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

/// Numbers that a node sends of each element: two, a sum and what it says nothing of, where ranks share a node.
constexpr std::size_t twofold_part_width(plan const& of) noexcept {
    return of.nodes > 1 && of.largest_node > 1 ? 2 : 1;
}

/// Where the second results of a bucket of `elements` begin in its memory.
constexpr std::size_t twofold_begin(std::size_t elements, plan const& of) noexcept {
    return round_up(elements, of.line_elements);
}

/// Room for a bucket and its second results, of which each bounce slot of `slot_elements` has one.
constexpr std::size_t twofold_piece(std::size_t slot_elements, plan const& of) noexcept {
    return slot_elements / 2 / of.line_elements * of.line_elements;
}

/// Fills in route, shards and chunks, as `divide` does of an all-reduce. Where servers return results, each shard has a second
/// one, `twofold_begin` behind it, with the same server and the same chunks: its pushes are empty, and its results are the second
/// ones. Every rank handles the same chunks of both, the second after the first.
///
/// Shape: the first results are a bucket; chunks are so small that parts of `twofold_part_width` fit slots.
/// Cost:  O(shards); no allocation if `shards` has the capacity.
template <class Sharding>
constexpr void divide_twofold(bucket& result, bucket_view const& view, plan const& facts,
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
