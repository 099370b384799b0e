// herring: tunings: sizes from which plans are computed, and settings of transports and intra-node reducers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_TUNINGS_HPP
#define HERRING_MODEL_TUNINGS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/links.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// The sizes from which a plan is computed. The intra_node policy sets `local_chunk_bytes`, `mailbox_bytes`,
/// `split_bytes` and `piece_bytes`, the reducer `max_message_bytes` and `shared_cores`, the transport all
/// others.
///
/// The defaults give a plan that works over any transport, with two hops for every bucket.
///
/// Units: bytes, unless the name says otherwise.
struct exchange_tuning {
    /// Unit in which a large bucket is pushed, summed and returned.
    std::size_t chunk_bytes = 64 << 10;
    /// The most bytes in flight to one server: pushed and not returned yet.
    std::size_t window_bytes = 256 << 10;
    /// Buckets up to this size take one hop.
    std::size_t one_hop_bytes = 0;
    /// Replaces `one_hop_bytes` for two nodes, if larger: there, one hop moves no more bytes than two hops.
    std::size_t one_hop_bytes_two_nodes = 0;
    /// CPU time of a message, of sender and receiver together, and its latency beyond that; nanoseconds.
    /// Buckets up to `dissemination_bytes` take the dissemination route where by these numbers it is cheaper
    /// than one hop.
    std::uint32_t message_ns = 0;
    std::uint32_t latency_ns = 0;
    std::size_t dissemination_bytes = 0;
    /// The largest message, `transport_facts::max_message`. If small, fewer buckets take the dissemination
    /// route, whose messages have the parts of up to half the nodes.
    std::size_t max_message_bytes = static_cast<std::size_t>(-1);
    /// On one node: the unit in which a local rank sums a bucket.
    std::size_t local_chunk_bytes = 64 << 10;
    /// On one node of 3 ranks or more, buckets up to this size go through mailboxes.
    std::size_t mailbox_bytes = 0;
    /// Larger buckets are split into several that pass the stages as a pipeline; 0: no bucket is split.
    std::size_t split_bytes = 0;
    /// On devices: a call's buffer passes in pieces of at most this size.
    std::size_t piece_bytes = 0;
    /// Buckets up to this size go to one server as a whole, where all ranks share so few cores that the
    /// number of messages decides. At most a chunk.
    std::size_t whole_bytes = 0;
    /// Where racks are declared: sums of buckets from this size on take two levels, if all racks have as many
    /// nodes, at least two, and all nodes as many ranks. `no_two_levels`: none does.
    std::size_t two_level_bytes = 256 << 10;
    static constexpr std::size_t no_two_levels = static_cast<std::size_t>(-1);
    /// Cores shared by all ranks of the world, if fewer than ranks; else 0. Set by the reducer.
    std::uint32_t shared_cores = 0;
    /// With a rate: chunk, window, routes and bucket sizes follow from these figures in place of the sizes
    /// above. Set by the reducer.
    herring::links links{};

    friend constexpr bool operator==(exchange_tuning const&, exchange_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::transport {

/// The congestion control of data sockets.
///
/// `unpaced`: reno, else cubic, else the system's. The engine's credits bound the bytes in flight, so a flow
/// should fill its window soon. BBR mistakes a flow that is short of data for a slow path; cubic mistakes the
/// jitter of a busy host for a full queue and leaves slow start too early (docs/performance.md).
enum class congestion : std::uint8_t { unpaced, system, reno, cubic, bbr };

/// Tuning of TCP; docs/performance.md has measurements.
struct tcp_tuning {
    std::size_t chunk_bytes = 128_KiB; ///< pushed, summed and returned at a time
    std::size_t window_bytes = 256_KiB; ///< in flight to one server: at least round trip × rate ÷ (nodes − 1)
    /// The same where all ranks share a host: no queue can overflow, and every message costs a wake-up.
    std::size_t loopback_chunk_bytes = 256_KiB;
    std::size_t loopback_window_bytes = 512_KiB;
    std::size_t one_hop_bytes = 16_KiB;          ///< buckets up to this size take one hop
    std::size_t one_hop_bytes_two_nodes = 1_MiB; ///< the same between two nodes
    /// CPU time of a message at both ends, measured on loopback, and its latency beyond that: between ranks
    /// of a host as measured, of a network the usual figure of a rack. Buckets up to `dissemination_bytes`
    /// take ⌈log2 nodes⌉ messages in a row in place of nodes − 1 at once where by these numbers it is
    /// cheaper.
    std::uint32_t message_ns = 5'000;
    std::uint32_t latency_ns = 10'000;
    std::uint32_t loopback_latency_ns = 2'000;
    std::size_t dissemination_bytes = 4_KiB;
    std::size_t whole_bytes = 16_KiB; ///< where ranks share few cores: buckets up to this go to one server
    std::size_t two_level_bytes =
        256_KiB;         ///< where racks are declared: buckets from this size on take two levels
    int connections = 1; ///< for each peer; more pays only if one flow cannot fill the link
    congestion control = congestion::unpaced;
    std::size_t direct_peers = 8;          ///< up to this number, peers are read without a poll() before
    std::size_t unexpected_bytes = 64_MiB; ///< buffered for messages whose receive is not posted yet
};

} // namespace HERRING_NAMESPACE::transport

namespace HERRING_NAMESPACE::intra_node {

/// Tuning of shared memory; docs/performance.md has measurements.
struct shared_memory_tuning {
    std::size_t local_chunk_bytes = 64_KiB; ///< ranks sum interleaved chunks of this size
    /// Buckets up to this size are copied to mailboxes and summed by every rank: one round instead of two.
    std::size_t mailbox_bytes = 4_KiB;
    /// On one node: larger buckets are split, and copied in from the caller's memory part by part.
    std::size_t split_bytes = 256_KiB;

    friend constexpr bool operator==(shared_memory_tuning const&, shared_memory_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE::intra_node

namespace HERRING_NAMESPACE::gpu {

/// `staging_tuning::sum_threads`: up to four on a node, none that would share a core with a rank.
inline constexpr int by_cores = -1;

/// Tuning of `pcie_staging`.
struct staging_tuning {
    /// Buckets of a rank in pinned memory: some copied in, some copied out, the others being summed.
    std::size_t slot_count = 8;
    std::size_t local_chunk_bytes = 64_KiB; ///< as in shared_memory_tuning
    std::size_t mailbox_bytes = 4_KiB;
    /// Larger buckets are split: parts are copied in, summed and copied out as a pipeline.
    std::size_t split_bytes = 4_MiB;
    /// The same for the caller's buffer of `all_reduce(device_span)`; at most split_bytes.
    std::size_t piece_bytes = 4_MiB;
    /// On one node: threads of each rank that sum its chunks of buckets, beside the polling thread. 0: the
    /// polling thread sums.
    int sum_threads = by_cores;
    /// Reads results once more: counts elements that are infinite or NaN, and computes the squared norm.
    bool inspect = false;
    bool graphs = false; ///< captures copies in, one graph per bucket and slot, and replays them

    friend constexpr bool operator==(staging_tuning const&, staging_tuning const&) = default;
};

/// Tuning of `nvlink` and `nccl`.
struct peer_sums_tuning {
    std::size_t slot_count = 4; ///< with several nodes: buckets of a rank in pinned memory
    /// With several nodes: larger buckets are split; parts are summed, exchanged and written as a pipeline.
    std::size_t split_bytes = 8_MiB;
    /// Pieces of `all_reduce(device_span)`: 4 in device memory; with several nodes at most split_bytes.
    std::size_t piece_bytes = 16_MiB;
    /// Reads results once more: counts elements that are infinite or NaN, and computes the squared norm.
    bool inspect = false;
    /// Captures packing, sums and results, one graph per bucket and slot, and replays them; nccl: packing.
    bool graphs = false;

    friend constexpr bool operator==(peer_sums_tuning const&, peer_sums_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_MODEL_TUNINGS_HPP
