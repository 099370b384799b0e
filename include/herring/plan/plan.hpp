// herring: the plan: layout + topology + policies → buckets, shards and chunks; pure, the same on every rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_PLAN_HPP
#define HERRING_PLAN_PLAN_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/topology.hpp"
#include "herring/model/tunings.hpp"
#include "herring/placement/placement.hpp"
#include "herring/plan/bucket.hpp"
#include "herring/plan/division.hpp"
#include "herring/plan/route_limits.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE {

/// All decisions about a step, computed once. A value: print it, compare it, test it.
///
/// Shape:  n tensors → `buckets`; each bucket → `shards` (one server each) → chunks of at most
///         `chunk_bytes`, handled on every node by local rank k mod L.
/// Cost:   O(tensors + shards) in time and memory; chunks are computed, not stored.
struct plan : route_limits {
    /// Pieces of a call's buffer in flight: one being copied in, one reduced, one copied out, one in reserve.
    static constexpr std::size_t bounce_slots = 4;
    std::vector<placed_tensor> tensors;
    std::vector<bucket> buckets;
    std::vector<shard> shards;
    std::size_t elements = 0; ///< of a rank's tensor memory, padding included
    std::uint64_t digest = 0; ///< of all of the above, compared between ranks at construction
    /// Memory of an optimizer on a rank that combines: state, weights before rounding, gradients of a step in
    /// two phases.
    std::size_t least_optimizer_bytes = 0, most_optimizer_bytes = 0;
    /// For a fusion policy with a threshold (`balanced_buffer`): its threshold, the threshold grown for these
    /// servers and ranks, and the least bytes of a bucket that each of them shall get. 0: another policy.
    std::size_t fusion_bytes = 0, grown_fusion_bytes = 0, least_share_bytes = 0;

    /// Bytes of one rank's tensor memory.
    constexpr std::size_t tensor_bytes() const noexcept { return elements * element_bytes; }

    /// Elements of the largest piece of a call's buffer on devices, in whole cache lines; a piece that passes
    /// the host is not larger than a bucket. 0: tensors do not lie on devices.
    constexpr std::size_t call_piece_elements() const noexcept {
        std::size_t const bytes =
            tuning.split_bytes > 0 ? std::min(tuning.piece_bytes, tuning.split_bytes) : tuning.piece_bytes;
        std::size_t const lines = bytes / element_bytes / line_elements;
        return (bytes > 0 && lines == 0 ? 1 : lines) * line_elements;
    }
    /// Staging memory of one rank that exchanges with `peers` ranks of other nodes, in bytes: peers · (window
    /// · chunk + one-hop window · one-hop chunk); where ranks share a node, the node's sum adds peers ·
    /// window · chunk + half a one-hop window · one-hop chunk. Dissemination adds window · nodes · its
    /// largest bucket, and two levels add `two_level_staging`.
    constexpr std::size_t staging_bytes(std::size_t peers) const noexcept {
        if (nodes < 2 || peers == 0) return 0;
        std::size_t const chunks = window() * parts.bytes(slot_elements());
        std::size_t const hop = parts.bytes(hop_slot_elements());
        std::size_t const held = peers * (chunks + one_hop_window() * hop) +
                                 dissemination_window() * dissemination_buffer_bytes() + two_level_staging();
        return largest_node > 1 ? held + peers * chunks + one_hop_stages() * hop : held;
    }
};

namespace detail {

[[noreturn]] HERRING_SEPARABLE void refuse_plan(std::initializer_list<text_part> what);

/// Returns the elements of all tensors. Refuses sizes beyond the limits of a plan.
constexpr std::size_t checked_sum(std::span<std::size_t const> elements, topology const& map,
                                  std::size_t element_bytes, std::size_t accumulator_bytes,
                                  exchange_tuning const& tuning) {
    if (element_bytes == 0 || element_bytes > 256 || accumulator_bytes == 0)
        refuse_plan({"elements of ", element_bytes, " bytes and accumulators of ", accumulator_bytes,
                     ": elements have 1 to 256 bytes, accumulators at least 1"});
    if (std::size_t const chunk = map.nodes() > 1 ? tuning.chunk_bytes : tuning.local_chunk_bytes; chunk < 64)
        refuse_plan({map.nodes() > 1 ? "chunk_bytes" : "local_chunk_bytes", " of the tuning is ", chunk,
                     ": a chunk has at least one cache line of 64 bytes; leave it out for the default"});
    std::size_t all = 0;
    for (std::size_t const one : elements) {
        if (one > (std::size_t{1} << 43) / element_bytes - all)
            refuse_plan({"the tensors have more than 8 TiB; see where their sizes come from"});
        all += one;
    }
    return all;
}

/// True if racks and nodes are alike, so that each node has one at its place in every rack, and racks have
/// several nodes.
constexpr bool takes_two_levels(plan const& p, topology const& map, exchange_tuning const& tuning) noexcept {
    int const each = map.nodes() / map.racks();
    if (map.racks() < 2 || each < 2 || !p.even || !p.all_have_both_roles() || !p.has_equal_shares() ||
        tuning.two_level_bytes == exchange_tuning::no_two_levels)
        return false;
    for (int n = 0; n < map.nodes(); ++n)
        if (map.rack(n) != n / each) return false;
    return true;
}

/// Elements of a piece of a buffer that passes bounce slots: few enough that all slots stay in cache, enough
/// to repay the flags of one execution. Over the network two chunks for each rank, but no more than keeps the
/// slots of a rank at 64 MiB, however many ranks there are.
constexpr std::size_t piece_elements_of(route_limits const& of) noexcept {
    auto const ranks = static_cast<std::size_t>(of.largest_node), nodes = static_cast<std::size_t>(of.nodes);
    std::size_t const bytes = nodes == 1
                                  ? (ranks <= 2 ? 64_KiB : 256_KiB)
                                  : std::min<std::size_t>(2 * ranks * nodes * of.tuning.chunk_bytes, 16_MiB);
    // At least one element a rank, however small the chunks are.
    std::size_t const least = round_up(ranks * nodes, of.line_elements);
    return std::max(bytes / of.element_bytes / of.line_elements * of.line_elements, least);
}

/// Bytes of the largest chunk of the plan's buckets, and of calls whose buffers pass in pieces: of a server's
/// share of a piece, or of the blocks of a node's ranks (`all_to_all`). Slots hold no more. 0: buffers are
/// reduced where they lie, in chunks of the tuning.
constexpr std::size_t call_chunk_bytes_of(plan const& p) noexcept {
    std::size_t const elements = p.tuning.piece_bytes > 0 ? p.call_piece_elements()
                                 : p.largest_node > 1     ? piece_elements_of(p)
                                                          : 0;
    if (p.nodes == 1 || elements == 0) return 0;
    std::size_t const piece = elements * p.element_bytes, line = p.line_elements * p.element_bytes;
    std::size_t share = 1;
    for (int const one : p.roles.shares) share = std::max(share, static_cast<std::size_t>(one));
    std::size_t const of_server = piece / p.roles.all_shares() * share;
    std::size_t most = std::max({std::size_t{4_KiB}, // room for a command to servers
                                 piece / 2 / static_cast<std::size_t>(p.nodes),
                                 of_server / static_cast<std::size_t>(p.largest_node) + 2 * line});
    for (bucket const& b : p.buckets)
        for (std::uint32_t s = b.first_shard; s < b.first_shard + b.shards; ++s)
            if (b.path != route::dissemination && b.path != route::two_levels)
                most = std::max(most, p.shards[s].chunk_elements * p.element_bytes);
    return std::min(most, p.tuning.chunk_bytes);
}

/// Digest of the parts of a plan that have to be equal on all ranks.
constexpr std::uint64_t digest_of(plan const& p) noexcept {
    digest sum;
    sum.add(p.elements).add(p.element_bytes).add(p.parts.element_bytes);
    for (int const node : p.roles.contributors) sum.add(node);
    for (int const rack : p.racks) sum.add(rack);
    for (std::size_t s = 0; s < p.roles.servers.size(); ++s)
        sum.add(p.roles.servers[s]).add(p.roles.share(server_id::at(s)));
    for (placed_tensor const& t : p.tensors) sum.add(t.offset).add(t.elements).add(t.bucket);
    for (bucket const& b : p.buckets) sum.add(b.offset).add(b.elements).add(b.chunks).add(b.path);
    for (shard const& s : p.shards)
        sum.add(s.offset).add(s.elements).add(s.chunk_elements).add(s.server.value);
    return sum.value();
}

} // namespace detail

/// Computes the plan; `elements[i]` is the size of tensor i in layout order.
///
/// Cost:   O(tensors + shards); usable in a constant expression.
/// Errors: `bad_argument`, the same on every rank: a sharding policy that does not give every element of a
///         bucket one server; a fusion policy that is not deterministic; a placement policy that lists a node
///         twice, a node that does not exist, or no server; chunks below a cache line; sizes beyond 8 TiB.
///         The text names the policy, and the bucket and the range, or the node.
/// Source: Herring, SC'20 (balanced buckets); Parameter Hub, SoCC'18 (chunks owned end to end).
template <class Fusion, class Sharding, class Placement = placement::colocated>
HERRING_SETUP constexpr plan make_plan(std::span<std::size_t const> elements, topology const& map,
                                       std::size_t element_bytes, std::size_t accumulator_bytes,
                                       exchange_tuning const& tuning) {
    std::size_t const all = detail::checked_sum(elements, map, element_bytes, accumulator_bytes, tuning);
    plan result;
    result.element_bytes = element_bytes;
    result.nodes = map.nodes();
    result.largest_node = map.largest_node();
    result.even = map.largest_node() == map.smallest_node();
    result.roles = Placement::assign(map);
    if (detail::roles_defect const defect =
            detail::defect_of(result.roles, map, Placement::facts.dedicated_servers);
        defect.what != nullptr)
        detail::refuse_roles(policy_name<Placement>(), defect, map);
    for (int n = 0; map.racks() > 1 && n < map.nodes(); ++n) result.racks.push_back(map.rack(n));
    if (detail::takes_two_levels(result, map, tuning))
        result.columns = roles::both(map.nodes() / map.racks());
    result.rack_parts = {accumulator_bytes, part_kind::accumulator};
    result.contributing_ranks = result.roles.contributing_ranks(map);
    result.parts = {element_bytes, part_kind::stored};
    if (accumulator_bytes != element_bytes && result.roles.largest_contributor(map) > 1)
        result.parts = {accumulator_bytes, part_kind::accumulator};
    result.line_elements =
        64 / std::gcd(std::size_t{64}, element_bytes); // for 24 bytes: 8 elements, which are 3 lines
    result.tuning = tuning;
    if (result.nodes > 1 && result.racks.empty() && tuning.links.uplink_rate_mbit > 0)
        detail::refuse_plan({"the links have an uplink_rate, and no racks are declared: declare racks, or "
                             "leave it out"});
    std::size_t links_bytes = detail::choose_sizes(result);
    if (links_bytes > 0) // execution numbers have 12 bits
        links_bytes = std::max(links_bytes, all * element_bytes / result.max_splits());
    result.tensors.reserve(elements.size());
    if constexpr (requires { Fusion::threshold(1, 1, 0), Fusion::bytes, Fusion::min_shard_bytes; }) {
        result.fusion_bytes = Fusion::bytes;
        result.grown_fusion_bytes =
            Fusion::threshold(result.roles.server_count(), result.largest_node, links_bytes);
        result.least_share_bytes = Fusion::min_shard_bytes;
    }

    std::size_t cut = 0;
    if (tuning.split_bytes > 0) {
        cut = std::max({tuning.split_bytes / element_bytes, all / result.max_splits(), result.line_elements});
        cut = cut / result.line_elements * result.line_elements;
    }
    std::vector<bucket_tensor> open, in_part;
    detail::server_loads loads(result.roles);
    std::size_t start = 0;
    std::size_t end = 0;
    std::size_t filled = 0; // end of the last tensor's elements
    auto const close = [&] {
        auto count = static_cast<std::uint32_t>(open.size());
        std::size_t const most = detail::split_elements(filled - start, cut, result.line_elements);
        for (std::size_t at = start; at < filled || count > 0; at += most) {
            std::size_t const size = std::min(most, filled - at);
            detail::range_of(open, at - start, size, in_part);
            bucket part{.offset = at,
                        .first_tensor = static_cast<std::uint32_t>(in_part.front().index),
                        .tensors = count};
            detail::divide<Sharding>(part, {size, result.line_elements, in_part}, result, result.shards,
                                     {.bucket = result.buckets.size(), .whole = loads.least(), .sums = true});
            result.buckets.push_back(part);
            if (result.whole_limit() > 0 || result.by_links()) loads.add(part, result.shards);
            count = 0;
        }
        open.clear();
        start = filled = end;
    };
    for (std::size_t i = 0; i < elements.size(); ++i) {
        std::size_t const padded = detail::round_up(elements[i], result.line_elements);
        result.tensors.push_back({end, elements[i], static_cast<std::uint32_t>(result.buckets.size())});
        open.push_back({i, end - start, padded});
        if (elements[i] > 0) filled = end + elements[i];
        end += padded;
        fusion_state const state{(end - start) * element_bytes,
                                 open.size(),
                                 i + 1 < elements.size() ? elements[i + 1] * element_bytes : 0,
                                 result.roles.server_count(),
                                 result.largest_node,
                                 links_bytes};
        bool const full = Fusion::closes(state);
        if (Fusion::closes(state) != full) // all ranks must close the same buckets
            detail::refuse_plan({"fusion policy '", policy_name<Fusion>(), "', bucket ",
                                 result.buckets.size(),
                                 ": closes() answers yes and no to the same question, after tensor ", i,
                                 " of ", elements.size(), "; it must depend on its argument alone"});
        if (full) close();
    }
    if (!open.empty()) close();
    result.elements = end;
    result.call_chunk_bytes = detail::call_chunk_bytes_of(result);
    result.digest = detail::digest_of(result);
    return result;
}

/// Returns the plan as text: buckets, shards and chunks, whether results may have other bits in another run,
/// the size of a full bucket, the buckets of each route, the optimizer's memory, and the staging memory.
HERRING_SEPARABLE std::string to_string(plan const& p);

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/plan/plan_impl.hpp"
#endif

#endif // HERRING_PLAN_PLAN_HPP
