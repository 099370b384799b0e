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
        bool const pays = (messages - rounds) * tuning.message_ns > (rounds - 1) * tuning.latency_ns;
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
        if (!twofold && bytes <= of.whole_limit()) return route::two_hop;
        if (bytes <= of.dissemination_limit()) return route::dissemination;
    }
    return bytes <= of.one_hop_limit() ? route::one_hop : route::two_hop;
}

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_ROUTE_LIMITS_HPP
