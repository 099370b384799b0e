// herring: the parts of a plan: buckets, shards, chunks, and the places of tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_BUCKET_HPP
#define HERRING_PLAN_BUCKET_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/range.hpp"
#include "herring/model/roles.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// The way of a bucket. The plan decides it from sizes and topology.
enum class route : std::uint8_t {
    mailbox,       ///< one node, small: every rank copies into its mailbox, and every rank sums all mailboxes
    local,         ///< one node: every local rank sums its own chunks for all
    one_hop,       ///< several nodes, small: every rank sends to every node, each sums in rank order
    two_hop,       ///< several nodes: push to the chunk's server, which sums and returns the result
    dissemination, ///< many nodes, tiny: ⌈log2 nodes⌉ rounds of forwarding; every rank sums in rank order
    two_levels ///< several racks, large sums: two hops within a rack, and in between two hops between racks
};

/// True if each chunk, or each rack's share of it, is combined by one rank, for all.
constexpr bool has_servers(route r) noexcept { return r == route::two_hop || r == route::two_levels; }

constexpr char const* to_string(route r) noexcept {
    switch (r) {
    case route::mailbox:
        return "mailbox";
    case route::local:
        return "local";
    case route::one_hop:
        return "one hop";
    case route::two_hop:
        return "two hops";
    case route::dissemination:
        return "dissemination";
    case route::two_levels:
        return "two levels";
    }
    return "unknown";
}

/// A range of a bucket with one server. Its chunk k starts at offset + k·chunk_elements.
struct shard {
    std::size_t offset = 0; ///< elements from the bucket's start
    std::size_t elements = 0;
    std::size_t chunk_elements = 0; ///< all chunks but the last have this many
    std::uint32_t chunks = 0;
    std::uint32_t first_chunk = 0; ///< number of this shard's chunk 0 among the chunks of the bucket
    /// A server of `plan::roles`; by two levels of `plan::columns`: the node at that place in each rack. −1
    /// where every node sums for itself (one hop).
    server_id server{0};
    int owner = -1; ///< local rank of the server that handles all chunks; -1: k mod L handles chunk k
};

/// A run of tensors that travels together. A split bucket is stored as several consecutive entries: only the
/// first has `tensors` > 0; the others become ready with it.
struct bucket {
    std::size_t offset = 0;         ///< elements from the start of a rank's tensor memory
    std::size_t elements = 0;       ///< with the padding between tensors
    std::uint32_t first_tensor = 0; ///< first tensor with elements here, or else the next one in the layout
    std::uint32_t tensors = 0;
    std::uint32_t first_shard = 0;
    std::uint32_t shards = 0;
    std::uint32_t chunks = 0;
    route path = route::local;
};

/// Where tensor i lies in a rank's tensor memory, in elements.
struct placed_tensor {
    std::size_t offset = 0;
    std::size_t elements = 0;
    std::uint32_t bucket = 0;
};

/// Returns a rack's share of a chunk that takes two levels: whole lines; the last racks may have fewer, or
/// none.
constexpr range rack_share(range const& chunk, int rack, int racks, std::size_t line_elements) noexcept {
    std::size_t const most =
        detail::round_up(detail::divide_up(chunk.elements, static_cast<std::size_t>(racks)), line_elements);
    std::size_t const begin = std::min(static_cast<std::size_t>(rack) * most, chunk.elements);
    return {chunk.offset + begin, std::min(most, chunk.elements - begin)};
}

/// Chunks that a pair of ranks exchanges within a shard: every `stride`-th, from `first` on.
///
/// Local rank l of a node of L ranks handles the chunks k with k mod L = l. So the pair (l of L, m of M)
/// shares the k that satisfy both, which is one residue modulo lcm(L, M), or none.
struct chunk_stream {
    std::uint32_t first = 0;
    std::uint32_t stride = 0; ///< 0: the pair shares no chunk

    constexpr bool any() const noexcept { return stride != 0; }

    /// True if the stream may have chunks of this shard. One local rank handles all chunks of a shard with an
    /// owner.
    constexpr bool handles(shard const& s) const noexcept {
        return any() && (s.owner < 0 || static_cast<std::uint32_t>(s.owner) % stride == first);
    }
    /// Number of the stream's chunks of this shard, if `handles`.
    constexpr std::uint32_t count(shard const& s) const noexcept {
        if (s.owner >= 0) return s.chunks;
        if (s.chunks <= first) return 0;
        std::uint32_t const from_first = s.chunks - first;
        return from_first <= stride
                   ? 1
                   : (from_first + stride - 1) / stride; // mostly one: a division takes longer
    }

    static constexpr chunk_stream between(int l, int size_l, int m, int size_m) noexcept {
        int stride = size_l; // the least common multiple: <numeric> would cost every program
        while (stride % size_m != 0) stride += size_l;
        for (int k = l; k < stride; k += size_l)
            if (k % size_m == m) return {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(stride)};
        return {};
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_BUCKET_HPP
