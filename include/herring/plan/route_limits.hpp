// herring: the sizes up to which buckets take each route, and how much of each route is in flight.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_ROUTE_LIMITS_HPP
#define HERRING_PLAN_ROUTE_LIMITS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/part_format.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/tunings.hpp"
#include "herring/plan/bucket.hpp"
#include "herring/plan/choose.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE {

/// The facts of a plan before its first bucket, and the sizes that follow from them.
struct route_limits {
    std::size_t element_bytes = 0; ///< as stored
    part_format parts; ///< of a node with one rank: as stored, or as sums where ranks of others share a node
    std::size_t line_elements = 1; ///< elements to a cache line
    exchange_tuning tuning;
    int nodes = 1;
    int largest_node = 1;
    herring::roles roles;       ///< of the nodes
    std::vector<int> racks;     ///< node → rack, ascending; empty: there is one
    herring::roles columns;     ///< the nodes of a rack, by place, where sums may take two levels; else empty
    part_format rack_parts;     ///< of the sum of a rack
    int contributing_ranks = 1; ///< ranks of all contributors
    bool even = true;           ///< all nodes have the same number of ranks
    bool rank_order = true;     ///< the parts of a node are combined in rank order
    /// Replaces `tuning.chunk_bytes` in calls, whose pieces have no larger chunks among many ranks. 0: the
    /// tuning holds.
    std::size_t call_chunk_bytes = 0;
    /// Upper bound on the bytes of a chunk that lies in a slot, once the plan's buckets are divided.
    constexpr std::size_t chunk_bytes() const noexcept {
        return call_chunk_bytes > 0 ? call_chunk_bytes : tuning.chunk_bytes;
    }
    /// Upper bound on chunks in flight to one server rank, per peer.
    constexpr std::uint32_t window() const noexcept {
        std::size_t const chunks = tuning.chunk_bytes == 0 ? 0 : tuning.window_bytes / tuning.chunk_bytes;
        return static_cast<std::uint32_t>(chunks < 2 ? 2 : chunks);
    }
    /// Upper bound on one-hop chunks in flight to one peer.
    static constexpr std::uint32_t one_hop_window() noexcept { return 8; }
    /// Upper bound on one-hop chunks of one rank in flight: half a window.
    static constexpr std::uint32_t one_hop_stages() noexcept { return one_hop_window() / 2; }

    /// Upper bound on split buckets: a larger model gets larger parts. Over the network the bound keeps
    /// execution numbers within the 12 bits that a tag carries.
    constexpr std::size_t max_splits() const noexcept { return nodes > 1 ? 1 << 10 : 1 << 16; }

    /// True if every node contributes and serves. If not, every bucket takes two hops.
    constexpr bool all_have_both_roles() const noexcept {
        if (roles.contributors.empty()) return true; // roles are not assigned yet
        return roles.contributor_count() == nodes && roles.server_count() == nodes;
    }
    /// True if each contributor serves too; there may be other servers.
    constexpr bool contributors_serve() const noexcept {
        for (int const node : roles.contributors)
            if (roles.server(node).value < 0) return false;
        return true;
    }
    /// Buckets up to this many bytes go to one server as a whole, which costs a contributor one message in
    /// place of one a server. 0 unless some nodes do not serve, or do not contribute, or ranks share few
    /// cores.
    constexpr std::size_t whole_limit() const noexcept {
        if (all_have_both_roles())
            return shares_few_cores() ? std::min(tuning.whole_bytes, tuning.chunk_bytes) : 0;
        return std::min(tuning.one_hop_bytes, tuning.chunk_bytes);
    }
    /// True if declared links choose the ways of buckets; servers of their own keep their limits.
    constexpr bool by_links() const noexcept {
        return tuning.links.rate_mbit > 0 && nodes > 1 && all_have_both_roles();
    }
    /// True if all servers combine as much. Only if not, pushes have to keep an order (`push_order`): equal
    /// shares keep it by turns.
    constexpr bool has_equal_shares() const noexcept {
        return std::all_of(roles.shares.begin(), roles.shares.end(),
                           [&](int one) { return one == roles.shares.front(); });
    }
    /// Servers of a bucket of `bytes` bytes by two hops.
    constexpr int servers_of(std::size_t bytes) const noexcept {
        if (bytes <= whole_limit()) return 1;
        if (!by_links() || !has_equal_shares()) return roles.server_count();
        choice const best = choose(shape(), bytes, tuning.links);
        return best.path == route::two_hop ? best.servers : nodes;
    }
    /// The shape by which declared links choose.
    constexpr network_shape shape() const noexcept {
        return {.nodes = nodes,
                .local_ranks = largest_node,
                .racks = racks.empty() ? 1 : racks.back() + 1,
                .forwards = nodes > 2 && even,
                .nests = false, // for all but the limit of two levels
                .cores = tuning.shared_cores,
                .element_bytes = element_bytes,
                .part_bytes = parts.element_bytes,
                .most_chunk_bytes =
                    tuning.max_message_bytes / // an all-gather sends two chunks at once
                    std::max({2 * element_bytes, parts.element_bytes, rack_parts.element_bytes}) *
                    element_bytes};
    }
    /// True if one server is faster than dissemination because the ranks share few cores: its 2 · (nodes − 1)
    /// messages take less time of these cores than the nodes · ⌈log2 nodes⌉ of dissemination, and the server,
    /// which sends half of its messages on one core, is not the bottleneck.
    constexpr bool shares_few_cores() const noexcept {
        auto const others = static_cast<std::uint64_t>(nodes - 1);
        return nodes > 2 && tuning.shared_cores > 0 &&
               others * std::max(tuning.shared_cores, 2u) < (others + 1) * dissemination_rounds();
    }
    /// Buckets up to this many bytes take one hop.
    constexpr std::size_t one_hop_limit() const noexcept {
        if (!all_have_both_roles()) return 0;
        return nodes == 2 && tuning.one_hop_bytes_two_nodes > tuning.one_hop_bytes
                   ? tuning.one_hop_bytes_two_nodes
                   : tuning.one_hop_bytes;
    }

    /// Gathers and scatters of up to this many bytes, of all blocks together, go through one server: 2 ·
    /// (nodes − 1) messages, where one hop takes nodes · (nodes − 1). 0 where a rank saves less by that than
    /// the further hop costs; by two hops, where ranks share a node, it saves always. At most 32 KiB, which
    /// may pass the server's network twice.
    constexpr std::size_t served_blocks_limit() const noexcept {
        bool const pays = largest_node > 1 || std::int64_t{nodes - 2} * tuning.message_ns > tuning.latency_ns;
        std::size_t const fits = slot_elements() * element_bytes;
        return nodes > 1 && pays && all_have_both_roles() ? std::min(32_KiB, fits) : 0;
    }

    /// Upper bound on chunks of one rank in flight by dissemination: half its window.
    static constexpr std::uint32_t dissemination_stages() noexcept { return 2; }
    static constexpr std::uint32_t dissemination_window() noexcept { return 2 * dissemination_stages(); }
    /// Messages per chunk that a rank sends by dissemination: ⌈log2 nodes⌉.
    constexpr std::uint32_t dissemination_rounds() const noexcept {
        return std::bit_width(static_cast<std::uint32_t>(nodes - 1));
    }
    /// Upper bound on the parts of nodes that one message carries by dissemination. Round r forwards
    /// min(2^r, nodes - 2^r) parts, most of them in the last round or in the round before. At least 3 nodes.
    constexpr std::size_t dissemination_message_parts() const noexcept {
        std::size_t const last = std::size_t{1} << (dissemination_rounds() - 1);
        return std::max(last / 2, static_cast<std::size_t>(nodes) - last);
    }
    /// Buckets up to this many bytes take the dissemination route; 0 if the saved messages cost less than the
    /// additional rounds. A rank sends to the ranks with its own local number, so all nodes must have the
    /// same number of ranks. No message is larger than `max_message_bytes`.
    constexpr std::size_t dissemination_limit() const noexcept {
        if (nodes < 3 || !even || !all_have_both_roles()) return 0;
        auto const messages = static_cast<std::uint64_t>(nodes - 1),
                   rounds = std::uint64_t{dissemination_rounds()};
        bool const pays =
            by_links() || (messages - rounds) * tuning.message_ns > (rounds - 1) * tuning.latency_ns;
        if (!pays) return 0;
        std::size_t const carried = tuning.max_message_bytes / parts.bytes(dissemination_message_parts());
        return std::min(tuning.dissemination_bytes / element_bytes, carried) * element_bytes;
    }
    /// Upper bound on the bytes of one message of the dissemination route; 0 if no bucket takes it.
    constexpr std::size_t dissemination_message_bytes() const noexcept {
        std::size_t const limit = dissemination_limit();
        return limit > 0 ? parts.bytes(limit / element_bytes * dissemination_message_parts()) : 0;
    }
    /// Bytes of one buffer of the dissemination window: it holds the parts of all nodes.
    constexpr std::size_t dissemination_buffer_bytes() const noexcept {
        return parts.bytes(static_cast<std::size_t>(nodes) * (dissemination_limit() / element_bytes));
    }

    /// True if sums of buckets may take two levels: from `tuning.two_level_bytes` on.
    constexpr bool has_two_levels() const noexcept { return !columns.servers.empty(); }
    /// Other nodes of a rank's rack, and nodes of other racks, that it exchanges chunks with by two levels.
    constexpr std::size_t near_nodes() const noexcept { return columns.servers.size() - 1; }
    constexpr std::size_t far_nodes() const noexcept {
        return static_cast<std::size_t>(nodes) / columns.servers.size() - 1;
    }
    /// Upper bound on chunks that a rank sums for its rack at a time: they pass four hops.
    constexpr std::uint32_t two_level_window() const noexcept { return 2 * window(); }
    constexpr std::size_t two_level_elements() const noexcept {
        return std::max(tuning.chunk_bytes / element_bytes, line_elements);
    }
    /// Upper bound on the elements of a rack's share of a chunk.
    constexpr std::size_t rack_share_elements(std::size_t of_chunk) const noexcept {
        return rack_share({0, of_chunk}, 0, static_cast<int>(far_nodes()) + 1, line_elements).elements;
    }
    /// Bytes of staging memory, and of the largest message, of two levels.
    constexpr std::size_t two_level_staging() const noexcept {
        if (!has_two_levels()) return 0;
        std::size_t const chunk = two_level_elements();
        return two_level_window() *
               (near_nodes() * (largest_node > 1 ? 2 : 1) * parts.bytes(chunk) +
                far_nodes() * rack_parts.bytes(rack_share_elements(chunk)) + rack_parts.bytes(chunk));
    }
    constexpr std::size_t two_level_message() const noexcept {
        return has_two_levels() ? std::max(parts.bytes(two_level_elements()),
                                           rack_parts.bytes(rack_share_elements(two_level_elements())))
                                : 0;
    }

    /// Elements of the largest chunk that a slot must hold. No chunk is smaller than `line_elements`.
    constexpr std::size_t slot_elements() const noexcept {
        return std::max(chunk_bytes() / element_bytes, line_elements);
    }
    /// Elements of the largest chunk by two hops that lies in no slot: those of an all-gather, whose pushes
    /// are empty and whose results arrive in place. As many bytes are in flight as in an all-reduce, which
    /// has a window of pushes and one of results.
    constexpr std::size_t unslotted_elements() const noexcept {
        return std::max(2 * tuning.chunk_bytes / element_bytes, line_elements);
    }
    /// The same by one hop. Local ranks share a bucket; shares are whole lines, of bytes too.
    constexpr std::size_t hop_slot_elements() const noexcept {
        std::size_t const most = one_hop_limit() / element_bytes, whole = std::min(most, slot_elements());
        if (largest_node == 1) return whole;
        return std::min(
            whole, detail::round_up(detail::divide_up(most, static_cast<std::size_t>(largest_node)), 128));
    }
    /// True if some bucket or call may take one hop.
    constexpr bool has_one_hop() const noexcept { return hop_slot_elements() > 0; }
};

namespace detail {

/// The facts of buckets of bytes, which are moved and not combined, in the same memory: no chunk, part or
/// message has more bytes than those of elements.
constexpr route_limits in_bytes(route_limits of) {
    std::size_t const each = std::min(of.element_bytes, of.parts.element_bytes);
    auto const whole = [&](std::size_t bytes) { return bytes / of.element_bytes * each; };
    std::size_t const chunk = std::min(of.tuning.chunk_bytes, of.slot_elements() * each),
                      carried = whole(of.dissemination_limit());
    of.tuning.one_hop_bytes = whole(of.tuning.one_hop_bytes);
    of.tuning.one_hop_bytes_two_nodes = whole(of.tuning.one_hop_bytes_two_nodes);
    of.tuning.dissemination_bytes = carried;
    of.tuning.chunk_bytes = chunk;
    of.call_chunk_bytes = 0;
    of.element_bytes = 1;
    of.parts = {1, part_kind::stored};
    of.line_elements = 64;
    return of;
}

/// The largest size up to which `holds`, at most `most`.
template <class Holds> constexpr std::size_t largest_size(std::size_t most, Holds const& holds) noexcept {
    std::size_t least = 0;
    while (least < most) {
        std::size_t const middle = most - (most - least) / 2;
        holds(middle) ? least = middle : most = middle - 1;
    }
    return least;
}

/// Replaces sizes of the tuning by those that declared links choose, and returns the bytes of a full bucket;
/// 0, and nothing is changed, without links or on one node.
///
/// Shape: staging of one hop, and of dissemination, keeps below 32 MiB a rank. One hop between two nodes
///        keeps its limit: it moves no more bytes than two hops, but both nodes sum all of them.
constexpr std::size_t choose_sizes(route_limits& of) noexcept {
    exchange_tuning& sizes = of.tuning;
    links& by = sizes.links;
    if (by.rate_mbit == 0 || of.nodes < 2) return 0;
    if (by.latency_ns == 0) by.latency_ns = sizes.latency_ns;
    if (by.send_ns == 0 && by.receive_ns == 0) by.send_ns = by.receive_ns = sizes.message_ns / 2;
    network_shape shape = of.shape();
    choice const any = choose(shape, 0, by);
    sizes.chunk_bytes = any.chunk_bytes;
    sizes.window_bytes = any.window_bytes;
    if (!of.by_links()) return any.bucket_bytes;
    auto const nodes = static_cast<std::size_t>(of.nodes), locals = static_cast<std::size_t>(of.largest_node);
    std::size_t const wide = of.parts.element_bytes, each = of.element_bytes; // staging has parts
    std::size_t const most = nodes == 2 ? of.one_hop_limit() : 4_MiB / wide * each * locals / (nodes - 1);
    shape.few = false; // the limits are also those of calls in which ranks give parts of a bucket
    sizes.dissemination_bytes = largest_size(8_MiB / wide * each / nodes, [&](std::size_t bytes) {
        return choose(shape, bytes, by).path == route::dissemination;
    });
    shape.forwards = false;
    sizes.one_hop_bytes = largest_size(
        most, [&](std::size_t bytes) { return choose(shape, bytes, by).path == route::one_hop; });
    sizes.one_hop_bytes_two_nodes = sizes.whole_bytes = 0;
    if (of.has_two_levels()) {
        shape = of.shape();
        shape.nests = true;
        std::size_t least = 1_KiB;
        while (least <= 1_GiB && choose(shape, least, by).levels == 1) least *= 2;
        sizes.two_level_bytes = least;
        if (least > 1_GiB) of.columns = {}; // which would have staging
    }
    return any.bucket_bytes;
}

/// The route of a bucket of `bytes` bytes. `undivided`: each rank gives the whole bucket or nothing, and
/// takes the whole bucket or nothing; for a bucket with owners, dissemination is chosen by the size of the
/// owners' parts. `twofold`: the bucket has two results for each element, which one server would return one
/// by one.
constexpr route route_of(std::size_t bytes, route_limits const& of, bool undivided = false,
                         bool twofold = false) noexcept {
    if (of.nodes == 1)
        return bytes <= of.tuning.mailbox_bytes && of.largest_node > 2 ? route::mailbox : route::local;
    if (!of.all_have_both_roles()) return route::two_hop;
    if (undivided && bytes > 0) {
        route const best = !twofold && of.by_links() ? choose(of.shape(), bytes, of.tuning.links).path
                           : !twofold && bytes <= of.whole_limit() ? route::two_hop
                                                                   : route::dissemination;
        if (best == route::two_hop || (best == route::dissemination && bytes <= of.dissemination_limit()))
            return best;
    }
    return bytes <= of.one_hop_limit() ? route::one_hop : route::two_hop;
}

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_ROUTE_LIMITS_HPP
