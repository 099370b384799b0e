// herring: the sizes of chunks, windows and small buckets that transports and intra-node reducers ask for.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_EXCHANGE_TUNING_HPP
#define HERRING_PLAN_EXCHANGE_TUNING_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// The sizes that a plan is made with. A transport sets the first four, an intra_node policy the last three.
///
/// The defaults make a plan that works over any transport, with two hops for every bucket.
///
/// Units: bytes, unless the name says otherwise.
struct exchange_tuning {
    /// Part of a large bucket that is pushed, summed and returned at a time.
    std::size_t chunk_bytes = 64 << 10;
    /// Pushed to one server and not returned yet, at most.
    std::size_t window_bytes = 256 << 10;
    /// Buckets up to this size take one hop.
    std::size_t one_hop_bytes = 0;
    /// The same where there are two nodes: one hop then moves no more bytes than two.
    std::size_t one_hop_bytes_two_nodes = 0;
    /// What a message costs both its ends together, and what it takes longer than that to arrive: buckets up to
    /// `dissemination_bytes` are passed on by few ranks in place of sent to all where that is cheaper. Nanoseconds.
    std::uint32_t message_ns = 0;
    std::uint32_t latency_ns = 0;
    std::size_t dissemination_bytes = 0;
    /// Part of a bucket that a local rank sums at a time on one node.
    std::size_t local_chunk_bytes = 64 << 10;
    /// Buckets up to this size go through mailboxes on one node of 3 ranks or more.
    std::size_t mailbox_bytes = 0;
    /// Larger buckets are split into several, which pass the stages one after the other; 0: none is split.
    std::size_t split_bytes = 0;

    friend constexpr bool operator==(exchange_tuning const&, exchange_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_EXCHANGE_TUNING_HPP
