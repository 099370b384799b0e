// herring: the numbers of transport::tcp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_TCP_TUNING_HPP
#define HERRING_MODEL_TCP_TUNING_HPP

#include "herring/base/config.hpp"
#include "herring/base/units.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::transport {

/// Which congestion control the data sockets ask for.
///
/// `unpaced`: reno, else cubic, else the system's. The credits of the engine bound what is in flight, so a flow should fill
/// its window soon. BBR takes a flow that is short of data for a slow path; cubic takes the jitter of a busy host for a
/// full queue and leaves slow start too early (docs/performance.md).
enum class congestion : std::uint8_t { unpaced, system, reno, cubic, bbr };

/// The settings of TCP; docs/performance.md has measurements of them.
struct tcp_tuning {
    std::size_t chunk_bytes = 128_KiB; ///< pushed, summed and returned at a time
    std::size_t window_bytes = 256_KiB; ///< in flight to one server: at least round trip × rate ÷ (nodes − 1)
    std::size_t loopback_chunk_bytes =
        256_KiB; ///< the same where all ranks share a host: no queue to overflow,
    std::size_t loopback_window_bytes = 512_KiB; ///< and every message costs a wake-up
    std::size_t one_hop_bytes = 16_KiB;          ///< buckets up to this take one hop
    std::size_t one_hop_bytes_two_nodes = 1_MiB; ///< the same between two nodes
    /// What a message costs the CPUs of both ends, measured on loopback, and its latency beyond that: between ranks of a host
    /// as measured there; of a network not measured, a rack's by the usual figures. Buckets up to `dissemination_bytes`
    /// take ⌈log2 nodes⌉ messages in a row in place of nodes − 1 at once where these say that it is cheaper.
    std::uint32_t message_ns = 5'000;
    std::uint32_t latency_ns = 10'000;
    std::uint32_t loopback_latency_ns = 2'000;
    std::size_t dissemination_bytes = 4_KiB;
    std::size_t whole_bytes = 16_KiB; ///< where ranks share few cores: buckets up to this go to one server
    int connections = 1;              ///< a peer; more pays only where one flow cannot fill the link
    congestion control = congestion::unpaced;
    std::size_t direct_peers = 8;          ///< up to so many peers are read without a poll() before
    std::size_t unexpected_bytes = 64_MiB; ///< buffered for messages whose receive is not posted yet
};

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_MODEL_TCP_TUNING_HPP
