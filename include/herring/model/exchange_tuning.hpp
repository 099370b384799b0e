// herring: the sizes of chunks, windows and small buckets that transports and intra-node reducers ask for.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_EXCHANGE_TUNING_HPP
#define HERRING_MODEL_EXCHANGE_TUNING_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// The sizes from which a plan is computed. `local_chunk_bytes`, `mailbox_bytes`, `split_bytes` and `piece_bytes` are set by the
/// intra_node policy, `max_message_bytes` by the reducer, all others by the transport.
///
/// The defaults give a plan that works over any transport, with two hops for every bucket.
///
/// Units: bytes, unless the name says otherwise.
struct exchange_tuning {
    /// Unit in which a large bucket is pushed, summed and returned.
    std::size_t chunk_bytes = 64 << 10;
    /// Upper bound on what is in flight to one server: pushed and not returned yet.
    std::size_t window_bytes = 256 << 10;
    /// Buckets up to this size take one hop.
    std::size_t one_hop_bytes = 0;
    /// Replaces `one_hop_bytes` with two nodes, if larger: there, one hop moves no more bytes than two.
    std::size_t one_hop_bytes_two_nodes = 0;
    /// CPU time that a message takes from sender and receiver together, and its latency beyond that; nanoseconds.
    /// Buckets up to `dissemination_bytes` take the dissemination route where these say that it is cheaper than one
    /// hop.
    std::uint32_t message_ns = 0;
    std::uint32_t latency_ns = 0;
    std::size_t dissemination_bytes = 0;
    /// Upper bound on a message: `transport_facts::max_message`. Where it is small, fewer buckets take the
    /// dissemination route, whose messages carry the parts of up to half the nodes.
    std::size_t max_message_bytes = static_cast<std::size_t>(-1);
    /// On one node: unit in which a local rank sums a bucket.
    std::size_t local_chunk_bytes = 64 << 10;
    /// On one node of 3 ranks or more, buckets up to this size go through mailboxes.
    std::size_t mailbox_bytes = 0;
    /// Larger buckets are split into several that pass the stages as a pipeline; 0: no bucket is split.
    std::size_t split_bytes = 0;
    /// On devices: a call's buffer passes in pieces of at most this size.
    std::size_t piece_bytes = 0;
    /// Buckets up to this size go to one server as a whole, where all ranks share so few cores that it is the number of messages
    /// that counts. At most a chunk.
    std::size_t whole_bytes = 0;
    /// Cores that all ranks of the world share and are fewer than ranks; 0: there are none. Set by the reducer.
    std::uint32_t shared_cores = 0;

    friend constexpr bool operator==(exchange_tuning const&, exchange_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_EXCHANGE_TUNING_HPP
