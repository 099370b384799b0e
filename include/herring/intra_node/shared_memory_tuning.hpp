// herring: the numbers of intra_node::shared_memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_SHARED_MEMORY_TUNING_HPP
#define HERRING_INTRA_NODE_SHARED_MEMORY_TUNING_HPP

#include "herring/base/config.hpp"
#include "herring/units.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::intra_node {

/// What may be tuned about shared memory; docs/performance.md tells which settings mattered where.
struct shared_memory_tuning {
    std::size_t local_chunk_bytes = 64_KiB; ///< ranks sum interleaved pieces of this size
    std::size_t mailbox_bytes =
        4_KiB; ///< up to this is copied to a mailbox and summed by everyone: one turn, not two
    std::size_t split_bytes =
        256_KiB; ///< on one node, larger buckets are cut: of memory of the callers', so much is copied in at a time

    friend constexpr bool operator==(shared_memory_tuning const&, shared_memory_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_INTRA_NODE_SHARED_MEMORY_TUNING_HPP
