// herring: divides a bucket of an operation with two results for each element, as of mean and deviation. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_TWOFOLD_HPP
#define HERRING_PLAN_TWOFOLD_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail {

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

#endif // HERRING_PLAN_TWOFOLD_HPP
